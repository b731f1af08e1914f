package agents

import (
	"slices"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// affects adds the open questions of an agent, and the work that it verifies. If an agent appears or disappears, everything is added: any
// question may name it.
func affects(c *settle.Change) {
	if c.Entry == nil || c.Entry.Gone() || !c.Entry.HasStatus() {
		c.AddAll()
		return
	}
	for _, r := range c.Tree().ReferrersOf(c.Ref, schemas.AgentKind.Name) {
		if spec := state.SpecOf[*schemas.AgentSpec](c.Tree().Entry(r)); spec != nil && slices.Contains(spec.Fallback, c.Ref.Name) {
			c.AddDependents(r)
		}
	}
	for _, r := range c.Tree().ReferrersOf(c.Ref, schemas.SessionKind.Name) {
		c.AddDependents(r) // it verifies their work
	}
	for _, r := range c.Tree().ReferrersOf(c.Ref, schemas.ClarificationRequestKind.Name) {
		if schemas.ClarificationOpen(state.StatusOf[schemas.ClarificationRequestStatus](c.Tree().Entry(r)).Phase) {
			c.AddWithReaders(r)
		}
	}
}

// AddWorking adds the agents that work or worked for an object, and those whose status names running work, as that work
// may be gone.
func AddWorking(w settle.Worklist, e *state.Entry) {
	for i := range e.Claims {
		w.Add(schemas.AgentKind.Ref(e.Claims[i].Agent))
	}
	for _, r := range e.Runs() {
		if r.Agent != "" {
			w.Add(schemas.AgentKind.Ref(r.Agent))
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
