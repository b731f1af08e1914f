package dags

import (
	"slices"

	"reconcile.dev/reconcile/controllers/planchanges"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Dormant lists the DAGs that succeeded and want nothing until their spec, their session or an action asks for it: no node
// of theirs asked anything, taught anything, or was an agent's, no object refers to them, and their files are users'. A run
// need not load them.
func Dormant(t *state.Tree) []schemas.Ref {
	var out []schemas.Ref
	changed := planchanges.Changed(t)
	for _, e := range t.Active(schemas.DAGKind.Name) {
		if finished(e) && len(t.Referrers(e.Ref)) == 0 && !mayBeMade(e) && !changed(e) {
			out = append(out, e.Ref)
		}
	}
	return out
}

func finished(e *state.Entry) bool {
	if e.Object == nil || e.Object != e.Object.Declared() || !e.HasStatus() || len(e.Claims) > 0 || e.RunsHave(state.Asks|state.Learned|state.OfAgent|state.Outputs) {
		return false
	}
	b := e.Brief()
	return b.Phase == schemas.DAGSucceeded && b.Ready == schemas.True && b.Running == 0 && !b.Blocked &&
		!b.FinishedAt.IsZero() && b.ObservedDigest == e.Object.Digest && !notifying(e)
}

// mayBeMade reports whether the program may have made the file of a DAG. It decodes nothing.
func mayBeMade(e *state.Entry) bool {
	return planchanges.NamesFix(e.Name) || slices.ContainsFunc(e.Object.Refs, func(r schemas.Reference) bool {
		return r.To.Kind == schemas.WorkflowKind.Name || r.To.Kind == schemas.PlanChangeKind.Name
	})
}
