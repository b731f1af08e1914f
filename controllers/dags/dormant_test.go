package dags

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
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
