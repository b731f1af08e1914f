package dags

import (
	"reconcile.dev/reconcile/controllers/budgets"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// overBudget sets the state of a node that could start: blocked, and reported, if a budget that its agent runs against is used up; else
// queued.
func (f *fold) overBudget(i int32, agent string) bool {
	f.set(i, schemas.NodeQueued, settle.ReasonWaitsForPlace, "waits for a place")
	all := f.b.Allowances(f.In, f.p, i, agent)
	if len(all) == 0 || f.recs[i].claim != nil {
		return false
	}
	why, until := budgets.SumsOf(f.World.OfRun, f.Tree, f.Now).Exceeded(all, f.Ref, f.p.Spec.Nodes[i].Name)
	if why == "" {
		f.next[i].Message = "waits for a place within the budget of " + budgets.Names(all)
		return false
	}
	f.set(i, schemas.NodeBlocked, settle.ReasonBudgetExceeded, why)
	if !until.IsZero() {
		f.wakeLater(until)
	}
	return true
}
