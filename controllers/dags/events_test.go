package dags

import (
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// TestEventsOfVerifications: what verifies and lands a change happens after the work, whose times the status of the node has. An event without
// a time happens now, and is the last one.
func TestEventsOfVerifications(t *testing.T) {
	start, end := schemas.NewTime(time.Unix(1, 0)), schemas.NewTime(time.Unix(5, 0))
	with := func(n, other schemas.NodeStatus) *state.Entry {
		e := &state.Entry{Ref: schemas.DAGKind.Ref("d")}
		e.SetStatus(&schemas.DAGStatus{Nodes: schemas.NodeStatusesOf(map[string]schemas.NodeStatus{"n": n, "other": other})})
		return e
	}
	var last *state.Entry
	for _, c := range []struct {
		n    schemas.NodeStatus
		want schemas.Time
	}{
		{schemas.NodeStatus{State: schemas.NodeRunning, StartedAt: start, Attempts: 1}, start},
		{schemas.NodeStatus{State: schemas.NodeQueued, Reason: settle.ReasonInspecting, StartedAt: start, FinishedAt: end, Attempts: 1}, schemas.Time{}},
		{schemas.NodeStatus{State: schemas.NodeRunning, Reason: settle.ReasonInspecting, StartedAt: start, FinishedAt: end, Attempts: 1}, schemas.Time{}},
		{schemas.NodeStatus{State: schemas.NodeSucceeded, StartedAt: start, FinishedAt: end, Attempts: 1}, schemas.Time{}},
		{schemas.NodeStatus{State: schemas.NodeRunning, StartedAt: end, Attempts: 2}, end},
		{schemas.NodeStatus{State: schemas.NodeFailed, StartedAt: end, FinishedAt: schemas.NewTime(time.Unix(9, 0)), Attempts: 2}, schemas.NewTime(time.Unix(9, 0))},
	} {
		now := with(c.n, schemas.NodeStatus{State: schemas.NodeSucceeded, FinishedAt: end})
		got := events(last, now)
		if last = now; len(got) == 0 || got[len(got)-1].Node != "n" && c.want.IsZero() {
			t.Fatalf("%s %s: %+v", c.n.State, c.n.Reason, got)
		}
		for _, e := range got {
			if e.Node == "n" && e.Time != c.want {
				t.Errorf("%s %s happens at %v, want %v", c.n.State, c.n.Reason, e.Time, c.want)
			}
		}
	}
}
