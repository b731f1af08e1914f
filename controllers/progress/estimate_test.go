package progress_test

import (
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/progress"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// A DAG with one node done and one running is half done, and the rest takes as long as the first did.
func TestEstimateOf(t *testing.T) {
	now := time.Date(2026, 2, 27, 10, 0, 0, 0, time.UTC)
	src := `{"apiVersion":"reconcile.dev/v1alpha1","kind":"DAG","metadata":{"name":"d"},"spec":{"session":"s","nodes":[
		{"name":"a","run":["a"]},{"name":"b","run":["b"],"needs":["a"]}]}}`
	o := schemas.NewDecoder(controllers.Schemas(), 0).Decode("specs/d.json", []byte(src)).Object
	at := func(d time.Duration) schemas.Time { return schemas.NewTime(now.Add(d)) }
	e := &state.Entry{Ref: o.Ref, Object: o}
	st := &schemas.DAGStatus{Layers: [][]string{{"a"}, {"b"}}, Nodes: schemas.NodeStatusesOf(map[string]schemas.NodeStatus{
		"a": {State: schemas.NodeSucceeded}, "b": {State: schemas.NodeRunning, StartedAt: at(-4 * time.Second)}})}
	e.SetStatus(st)
	e.SetRuns([]*schemas.Run{{Key: "dags/d/a-0123456789abcdef-1", Owner: "dag/d", Node: "a", Seq: 1, Outcome: schemas.OutcomeSucceeded,
		StartedAt: at(-14 * time.Second), FinishedAt: at(-4 * time.Second)}})
	settings := new(schemas.SettingsSpec)
	settings.Default()
	tree := state.NewTree(controllers.Schemas(), settings, nil, e)
	got := progress.EstimateOf(tree, e, 2, now)
	if got == nil || got.NodesDone != 1 || got.Nodes != 2 || got.LayersDone != 1 || got.Layers != 2 || got.Left() != 6*time.Second {
		t.Fatalf("%+v, left %v", got, got.Left())
	}
	st.Nodes = schemas.NodeStatusesOf(map[string]schemas.NodeStatus{"a": st.Nodes.Of("a"), "b": {State: schemas.NodeSucceeded}})
	if got := progress.EstimateOf(tree, e, 2, now); got != nil {
		t.Errorf("a DAG without work: %+v", got)
	}
}
