package dags

import (
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Dormant lists the DAGs that succeeded and want nothing until their spec, their session or an action asks for it: no node
// of theirs asked anything, taught anything, or was an agent's, and no object refers to them. A run need not load them.
func Dormant(t *state.Tree) []schemas.Ref {
	var out []schemas.Ref
	for _, e := range t.Active(schemas.DAGKind.Name) {
		if finished(e) && len(t.Referrers(e.Ref)) == 0 {
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
