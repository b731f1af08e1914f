package dags

import (
	"fmt"
	"time"

	"reconcile.dev/reconcile/controllers/dags/plan"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/spans"
	"reconcile.dev/reconcile/schemas"
)

// The time limit of a called DAG counts, in each call, the part of the calling DAG's time in which a node of the call runs, backs off
// or waits for a place, from the call's first start, or from the latest retry of a node in it. When it is over, the nodes of the call
// that have not started end, but for those that clean up, and the calling node fails.

// keepCallsOver finds the calls whose time was over before. That stands until a key in the call changes.
func (f *fold) keepCallsOver() {
	f.callsOver = nil
	for k := range f.p.Timed {
		c, was := &f.p.Timed[k], false
		for _, i := range c.Nodes {
			if f.was[i].Reason == settle.ReasonCallTimeout {
				was = true
			}
			if f.was[i].Key != f.b.Keys[i] {
				was = false
				break
			}
		}
		if was {
			f.endCall(c)
		}
	}
}

// endCall has the nodes of a call end that have not started.
func (f *fold) endCall(c *plan.Call) {
	if f.callsOver == nil {
		f.callsOver = map[int32]*plan.Call{}
	}
	f.callsOver[c.Join] = c
	for _, i := range c.Nodes {
		if !f.p.CleansUp(i) {
			f.callsOver[i] = c
		}
	}
}

// callsEnd reports whether the time of calls is over by the present states: then the nodes are judged again.
func (f *fold) callsEnd() (more bool) {
	if !f.gate.Open || over(f.old) && !f.reopened() {
		return false
	}
	for k := range f.p.Timed {
		c, limit := &f.p.Timed[k], f.p.Timed[k].Timeout.Std()
		active := f.callTimes[k]
		at := spans.Reached(active, limit)
		switch {
		case f.callsOver[c.Join] != nil || at.IsZero():
		case !f.Now.Before(at):
			f.endCall(c)
			more = true
		case spans.IsOpen(active):
			f.wake(at)
		}
	}
	return more
}

// overCall is how node i ends whose call is out of time.
func (f *fold) overCall(i int32) {
	if c := f.callsOver[i]; c != nil && i != c.Join {
		f.expireNode(i, settle.ReasonCallTimeout, callOver(c))
	}
}

func callOver(c *plan.Call) string {
	return fmt.Sprintf("the timeout of %s of dag/%s is over in this call", c.Timeout, c.DAG)
}

// callDeadline is when the first of the limits of calls that node i is in is reached if the call goes on working; zero for none, and
// while all of them stand still.
func (f *fold) callDeadline(i int32) (at time.Time) {
	for _, k := range f.p.TimedOf[i] {
		limit := f.p.Timed[k].Timeout.Std()
		if len(f.callTimes[k]) == 0 {
			at = spans.Sooner(at, f.Now.Add(limit)) // it has not started
		} else {
			at = spans.Sooner(at, spans.Reached(f.callTimes[k], limit))
		}
	}
	return at
}

// expireNode ends a node that has not started since a time limit is over.
func (f *fold) expireNode(i int32, reason, message string) {
	if f.recs[i].land.of != nil || f.recs[i].verify.of != nil {
		return // its work is done
	}
	switch s := f.next[i]; s.State {
	case schemas.NodePending, schemas.NodeQueued, schemas.NodeBlocked:
		s.RetryAt = schemas.Time{}
		if f.recs[i].failures > 0 {
			f.set(i, schemas.NodeFailed, reason, message)
		} else {
			f.stop(i, schemas.NodeCancelled, reason, message)
		}
	}
}
