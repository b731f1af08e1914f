package dags

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/mutants"
)

// TestDormantFilesAreOfUsers: a finished DAG is dormant unless its file may be the program's, which has to be committed.
func TestDormantFilesAreOfUsers(t *testing.T) {
	t.Parallel()
	at := schemas.NewTime(time.Unix(1, 0))
	finished := func(name string, spec schemas.DAGSpec) *state.Entry {
		text, err := json.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		e := &state.Entry{Ref: schemas.DAGKind.Ref(name),
			Object: schemas.NewObject(schemas.DAGKind, schemas.Metadata{Name: name}, "specs/"+name+".yaml", name, text, spec.References())}
		e.SetStatus(&schemas.DAGStatus{FinishedAt: at, Common: schemas.Common{Phase: schemas.DAGSucceeded, ObservedDigest: name,
			Conditions: []schemas.Condition{{Type: schemas.Ready, Status: schemas.True}}}})
		return e
	}
	change := &state.Entry{Ref: schemas.PlanChangeKind.Ref("p")}
	change.SetStatus(&schemas.PlanChangeStatus{Common: schemas.Common{Phase: schemas.PlanApplied}, DAG: "dag/changed", Digest: "changed"})
	tree := state.NewTree(schemas.Kinds{schemas.DAGKind, schemas.PlanChangeKind}, nil, nil, change,
		finished("users", schemas.DAGSpec{}), finished("changed", schemas.DAGSpec{}), finished("s-fix-1", schemas.DAGSpec{Fixes: "s"}),
		finished("answers", schemas.DAGSpec{Answers: "p"}), finished("run", schemas.DAGSpec{Workflow: &schemas.WorkflowRun{Name: "w", Start: "a"}}))
	var got []schemas.Ref
	rests := rests(tree)
	for _, e := range tree.Active(schemas.DAGKind.Name) {
		if rests(e) {
			got = append(got, e.Ref)
		}
	}
	if want := []schemas.Ref{schemas.DAGKind.Ref("users")}; !slices.Equal(got, want) {
		t.Errorf("%v rest, want %v", got, want)
	}
}

// TestPausedDAGsRest: a DAG of a paused session rests while nothing of it has run, and nobody acted on it.
func TestPausedDAGsRest(t *testing.T) {
	t.Parallel()
	pending := map[string]schemas.NodeStatus{"a": {State: schemas.NodePending}, "b": {State: schemas.NodePending}}
	for _, c := range []struct {
		name   string
		change func(*schemas.DAGStatus)
		rests  bool
	}{
		{"nothing has run", func(*schemas.DAGStatus) {}, true},
		{"a node is skipped", func(st *schemas.DAGStatus) {
			st.Nodes = schemas.NodeStatusesOf(map[string]schemas.NodeStatus{"a": {State: schemas.NodeSkipped}, "b": {State: schemas.NodePending}})
		}, false},
		{"somebody acted on it", func(st *schemas.DAGStatus) { st.Actions = []schemas.AppliedAction{{}} }, false},
		{"it is in a group", func(st *schemas.DAGStatus) { st.Group = new(schemas.GroupStatus) }, false},
		{"it runs", func(st *schemas.DAGStatus) { st.Phase = schemas.DAGRunning }, false},
	} {
		st := &schemas.DAGStatus{Common: schemas.Common{Phase: schemas.DAGPaused}, Nodes: schemas.NodeStatusesOf(pending)}
		c.change(st)
		e := &state.Entry{Ref: schemas.DAGKind.Ref("d"), Object: schemas.NewObject(schemas.DAGKind, schemas.Metadata{Name: "d"}, "specs/d.yaml", "d", nil, nil)}
		e.SetStatus(st)
		if got := rests(state.NewTree(schemas.Kinds{schemas.DAGKind}, nil, nil, e))(e); got != c.rests {
			t.Errorf("%s: rests is %t", c.name, got)
		}
	}
}

func TestRestMutants(t *testing.T) {
	mutants.Suite{Mutants: mutants.NoticedBy("TestPausedDAGsRest", []mutants.Mutant{
		{"a DAG rests of which a node was skipped", "dormant.go", "if n.State != schemas.NodePending {", "if n.State == schemas.NodeRunning {"},
		{"an action does not keep a DAG from rest", "dormant.go", " || len(st.Actions) > 0", ""},
		{"a DAG of a group rests", "dormant.go", "st.Group != nil || ", ""},
	})}.Run(t)
}
