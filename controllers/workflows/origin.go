package workflows

import (
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Origin finds out which sessions and DAGs of a tree starts of workflows have made: their files are committed together with what follows
// from them, and later edits are users'. nil for any other.
func Origin(t *state.Tree) func(*state.Entry) settle.Origin {
	made := map[string]bool{} // the session of a run has the name of its DAG
	for _, w := range t.Entries(schemas.WorkflowKind.Name) {
		for _, e := range runs(t, w.Name) {
			if run := runIn(e); run != nil && run.Start != "" {
				made[e.Name] = true
			}
		}
	}
	if len(made) == 0 {
		return nil
	}
	return func(e *state.Entry) settle.Origin {
		if made[e.Name] {
			return settle.OriginMade
		}
		return settle.OriginUser
	}
}
