package controllers

import (
	"slices"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// dagAffects adds what reads a DAG: its session and its agents, those of before too. Of one that is gone nothing says whom it
// affected, and of one that was broken nothing says which session its file named.
func dagAffects(c *Change) {
	e := c.Entry
	if e == nil {
		c.AddAll()
		return
	}
	if e.Brief().StalledReason == ReasonInvalidSpec && c.Note("all sessions") {
		for _, session := range c.Tree().Entries(schemas.SessionKind.Name) {
			addSession(c.Worklist, session.Name)
		}
	}
	if st, ok := e.Status().(*schemas.DAGStatus); ok && st.Session != "" {
		addSession(c.Worklist, st.Session)
	}
	refs := e.Refs
	if e.Object != nil {
		refs = e.Object.Refs
	}
	for _, r := range refs {
		if r.To.Kind == schemas.SessionKind.Name {
			addSession(c.Worklist, r.To.Name)
		} else {
			c.Add(r.To)
		}
	}
	addAgents(c.Worklist, e)
}

// addSession adds a session that a DAG belongs to. If the session's desired phase is Completed, its slot may become
// free.
func addSession(w Worklist, name string) {
	e := w.Tree().Entry(sessionRef(name))
	if e == nil {
		return
	}
	w.Add(e.Ref)
	if spec := sessionSpec(e); spec != nil && spec.Phase == schemas.SessionCompleted {
		w.Note(slotsMayChange)
	}
}

// addAgents adds the agents that work or worked for an object, and those whose status names running work, as that work
// may be gone.
func addAgents(w Worklist, e *state.Entry) {
	for i := range e.Claims {
		w.Add(agentRef(e.Claims[i].Agent))
	}
	for _, r := range e.Runs() {
		if r.Agent != "" {
			w.Add(agentRef(r.Agent))
		}
	}
	if !w.Note("working agents") {
		return
	}
	for _, e := range w.Tree().Entries(schemas.AgentKind.Name) {
		if st, ok := e.Status().(*schemas.AgentStatus); ok && len(st.Running) > 0 {
			w.Add(e.Ref)
		}
	}
}

// addMovedQuestions adds the open requests of nodes whose key moved in the round, or that it skipped.
func addMovedQuestions(r *Round) {
	r.changed(schemas.DAGKind.Name, func(was, is *state.Entry) {
		for _, ref := range r.Tree().ReferrersOf(is.Ref, schemas.ClarificationRequestKind.Name) {
			e := r.Tree().Entry(ref)
			spec := requestSpec(e)
			if spec == nil || !schemas.ClarificationOpen(requestStatusOf(e).Phase) {
				continue
			}
			_, node, ok := schemas.SplitRunKey(spec.Run)
			if ok && (nodeKeyOf(was, node) != nodeKeyOf(is, node) || skipped(was, node) != skipped(is, node)) {
				r.AddChanged(ref)
			}
		}
	})
}

// addActionHolders adds the DAGs that remember an action on a session. They may have moved to another session since.
func addActionHolders(w Worklist, action string) {
	for _, e := range w.Tree().Entries(schemas.DAGKind.Name) {
		st, ok := e.Status().(*schemas.DAGStatus)
		if ok && slices.ContainsFunc(st.Actions, func(a schemas.AppliedAction) bool { return a.Name == action }) {
			w.AddChanged(e.Ref)
		}
	}
}
