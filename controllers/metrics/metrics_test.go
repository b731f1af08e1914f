package metrics

import (
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(d time.Duration) schemas.Time { return schemas.NewTime(now.Add(d)) }

// TestOf counts a node that waits in the lane to which it has aged, and runs under the node's priority.
func TestOf(t *testing.T) {
	spec := []byte(`{"session": "s", "nodes": [{"name": "a", "run": ["a"]}, {"name": "b", "run": ["b"], "priority": "low"}]}`)
	o := schemas.NewObject(schemas.DAGKind, schemas.Metadata{Name: "d"}, "specs/dags/d.yaml", "d", spec, nil)
	e := &state.Entry{Ref: schemas.DAGKind.Ref("d"), Object: o}
	e.SetStatus(&schemas.DAGStatus{Nodes: schemas.NodeStatusesOf(map[string]schemas.NodeStatus{
		"a": {State: schemas.NodeRunning},
		"b": {State: schemas.NodeQueued, QueuedAt: at(-6 * time.Minute)},
	})})
	var runs []*schemas.Run
	for i := range 100 {
		start := time.Duration(i) * time.Second
		runs = append(runs, &schemas.Run{Node: "a", Seq: i + 1, Outcome: schemas.OutcomeSucceeded, QueuedAt: at(0), StartedAt: at(start), FinishedAt: at(2 * start)})
	}
	cost := 0.25
	runs = append(runs, &schemas.Run{Node: "b", Outcome: schemas.OutcomeTimedOut, StartedAt: at(0), FinishedAt: at(time.Second),
		Turn: &schemas.Turn{CostUSD: &cost, Usage: &schemas.Usage{InputTokens: 10, OutputTokens: 5}}},
		&schemas.Run{Node: "b", Outcome: schemas.OutcomeSucceeded, Turn: &schemas.Turn{Estimate: &schemas.Usage{InputTokens: 7}}}, &schemas.Run{Node: "gone", Outcome: schemas.OutcomeFailed})
	e.SetRuns(runs)
	m := Of(state.NewTree(nil, nil, nil, e), now)
	if len(m.Lanes) != 2 || m.Lanes[0].Name != "normal" || m.Lanes[1].Name != "low" || len(m.Sessions) != 1 {
		t.Fatalf("%+v", m)
	}
	normal, low, s := m.Lanes[0], m.Lanes[1], m.Sessions[0]
	want := Quantiles{Count: 100, Sum: 4950, P50: 49, P95: 94, P99: 98}
	if normal.Waited != want || normal.Worked != want || normal.Runs != 100 || normal.Running != 1 {
		t.Errorf("normal: %+v", normal)
	}
	if normal.Queued != 1 || normal.OldestSeconds != 360 || low.Queued != 0 {
		t.Errorf("what has waited for 6 minutes is low still: %+v %+v", normal, low)
	}
	if low.Failed() != 1 || low.Tokens != 15 || low.Used.EstimatedTokens != 7 || low.Used.UnknownCost != 1 || low.CostUSD != 0.25 || low.Waited.Count != 0 {
		t.Errorf("low: %+v", low)
	}
	if s.Runs != 102 || s.Queued != 1 || s.Worked.Count != 101 {
		t.Errorf("session: %+v", s)
	}
}
