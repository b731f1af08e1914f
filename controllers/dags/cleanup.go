package dags

import (
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// A node whose condition reads the state of a need, a cleanup for short, is judged when its needs have ended, in whatever
// state. A failure elsewhere does not end it under failFast. When the DAG is cancelled or its time is over, only a need that
// did not succeed lets it run, and the DAG's time limit does not bound it then.

// unmet is the first node that node i has to wait for and that ended without letting its dependents go on, -1 for none; all
// tells whether all of these have ended.
func (f *fold) unmet(i int32) (need int32, all bool) {
	need, all = -1, true
	for _, to := range f.awaited(i) {
		switch s := f.next[to]; {
		case !readiness.NodeEnded(s):
			all = false
		case need < 0 && !readiness.NodeMet(s) && !f.tolerated(to):
			need = to
		}
	}
	return need, all
}

// cleans reports whether node i is a cleanup that runs, or would, since a need of it did not succeed.
func (f *fold) cleans(i int32) bool {
	if !f.p.CleansUp(i) {
		return false
	}
	need, all := f.unmet(i)
	return all && need >= 0
}

// cleanupMet is needsMet for a cleanup: it may start once all its needs have ended, and its condition decides.
func (f *fold) cleanupMet(i int32) bool {
	need, all := f.unmet(i)
	switch {
	case !all:
		f.stop(i, schemas.NodePending, "", "")
	case need < 0 && f.verbs[i] == verbCleanup:
		f.stop(i, schemas.NodeCancelled, settle.ReasonCancelledByAction, "an action cancelled the DAG; retry runs it again")
	case need >= 0 && f.recs[i].last == nil && !f.recs[i].running() && !f.whenHolds(i):
		if f.next[i].State == schemas.NodeSkipped {
			f.leaveOut(i, need) // so that what needs it does not go on as after a success
		}
	default:
		return true
	}
	return false
}

// leaveOut skips node i for a need that did not succeed.
func (f *fold) leaveOut(i, need int32) {
	s, name := f.next[need], f.p.Spec.Nodes[need].Name
	if s.State == schemas.NodeFailed || s.State == schemas.NodeSkipped && s.Reason == settle.ReasonNeedFailed {
		f.stop(i, schemas.NodeSkipped, settle.ReasonNeedFailed, "needs "+name+", which did not succeed")
		return
	}
	f.stop(i, schemas.NodeSkipped, settle.ReasonNeedCancelled, "needs "+name+", which was cancelled")
}
