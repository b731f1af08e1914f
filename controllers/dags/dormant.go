package dags

import (
	"slices"

	"reconcile.dev/reconcile/controllers/planchanges"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// rests: a DAG that succeeded, or of which nothing has run since its session is paused. No object refers to it, and its file is a user's.
func rests(t *state.Tree) func(*state.Entry) bool {
	changed := planchanges.Changed(t)
	return func(e *state.Entry) bool {
		return e.HasStatus() && (finished(e) || paused(e)) && len(t.Referrers(e.Ref)) == 0 && !mayBeMade(e) && !changed(e)
	}
}

func finished(e *state.Entry) bool {
	b := e.Brief()
	return b.Phase == schemas.DAGSucceeded && b.Ready == schemas.True && b.Running == 0 && !b.Blocked && !b.FinishedAt.IsZero() && !notifying(e)
}

func paused(e *state.Entry) bool {
	b := e.Brief()
	if b.Phase != schemas.DAGPaused || b.Running > 0 || b.Blocked || b.Progress.Done > 0 || !b.FinishedAt.IsZero() || e.RunCount() > 0 {
		return false
	}
	st, ok := e.Status().(*schemas.DAGStatus)
	if !ok || st.Group != nil || len(st.Actions) > 0 || len(schemas.UndecidedOf(b, e.Status)) > 0 {
		return false
	}
	for _, n := range st.Nodes.All() {
		if n.State != schemas.NodePending {
			return false
		}
	}
	return true
}

// mayBeMade reports whether the program may have made the file of a DAG. It decodes nothing.
func mayBeMade(e *state.Entry) bool {
	return planchanges.NamesFix(e.Name) || slices.ContainsFunc(e.Object.Refs, func(r schemas.Reference) bool {
		return r.To.Kind == schemas.WorkflowKind.Name || r.To.Kind == schemas.PlanChangeKind.Name
	})
}
