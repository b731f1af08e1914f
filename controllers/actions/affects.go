package actions

import (
	"slices"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// affects adds the target of an action: the present one and the one that it was applied to. If nothing is left of
// an action, its target is unknown, and everything is added.
func affects(c *settle.Change) {
	e := c.Entry
	switch {
	case e == nil:
		c.AddAll()
		return
	case !c.Itself:
		return
	}
	if spec := schemas.SpecAs[*schemas.ActionSpec](e.Object); spec != nil && spec.Target == schemas.TargetAll {
		c.AddAll()
		return
	} else if spec != nil && spec.Target == schemas.TargetTree {
		return
	}
	if st, ok := e.Status().(*schemas.ActionStatus); ok && st.Target != "" {
		if st.Target == schemas.TargetAll {
			c.AddAll()
			return
		}
		if ref, err := targetKinds.ParseRef(st.Target); err == nil {
			addTarget(c.Worklist, ref)
			if ref.Kind == schemas.SessionKind.Name && e.Gone() {
				addActionHolders(c.Worklist, e.Name)
			}
		}
	}
	if spec := schemas.SpecAs[*schemas.ActionSpec](e.Object); spec != nil {
		if ref, err := spec.TargetRef(); err == nil {
			addTarget(c.Worklist, ref)
			if spec.Permission != nil && spec.Permission.For == schemas.PermitSession {
				addSession(c.Worklist, ref)
			}
		}
	}
}

// addSession adds to what an action affects the DAGs of the session of its target.
func addSession(w settle.Worklist, ref schemas.Ref) {
	to := state.SpecOf[*schemas.DAGSpec](w.Tree().Entry(ref))
	if to == nil {
		return
	}
	for _, e := range w.Tree().Entries(schemas.DAGKind.Name) {
		if spec := state.SpecOf[*schemas.DAGSpec](e); spec != nil && spec.Session == to.Session {
			w.AddChanged(e.Ref)
		}
	}
}

var targetKinds = schemas.Kinds{schemas.DAGKind, schemas.SessionKind, schemas.PlanChangeKind}

// addTarget adds to what an action affects its target.
func addTarget(w settle.Worklist, ref schemas.Ref) {
	if w.Tree().Entry(ref) != nil {
		w.AddChanged(ref)
	}
}

// addActionHolders adds the DAGs that remember an action on a session. They may have moved to another session since.
func addActionHolders(w settle.Worklist, action string) {
	for _, e := range w.Tree().Entries(schemas.DAGKind.Name) {
		st, ok := e.Status().(*schemas.DAGStatus)
		if ok && slices.ContainsFunc(st.Actions, func(a schemas.AppliedAction) bool { return a.Name == action }) {
			w.AddChanged(e.Ref)
		}
	}
}
