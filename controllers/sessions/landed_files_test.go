package sessions

import (
	"slices"
	"testing"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// TestLandedFiles: of a session count the runs whose commits landed, and no others.
func TestLandedFiles(t *testing.T) {
	dag := func(name, session string, runs ...*schemas.Run) *state.Entry {
		o := schemas.NewObject(schemas.DAGKind, schemas.Metadata{Name: name}, "specs/dags/"+name+".yaml", name,
			[]byte(`{"session": "`+session+`", "nodes": [{"name": "a", "agent": "x", "prompt": "A."}]}`),
			[]schemas.Reference{{To: schemas.SessionKind.Ref(session), Hard: true}})
		e := &state.Entry{Ref: schemas.DAGKind.Ref(name), Object: o}
		e.SetRuns(runs)
		return e
	}
	work := func(key string, changed int, files ...string) *schemas.Run {
		return &schemas.Run{Key: key, Node: "a", Outcome: schemas.OutcomeSucceeded, Workspace: &schemas.RunWorkspace{Files: files, Changed: changed}}
	}
	land := func(key, outcome string) *schemas.Run {
		return &schemas.Run{Key: key + "-land", Node: "a", Lands: key, Outcome: outcome, Workspace: &schemas.RunWorkspace{Kind: "land"}}
	}
	tree := state.NewTree(nil, nil, nil,
		dag("one", "s", work("1", 2, "b.go", "a.go"), land("1", schemas.OutcomeSucceeded), work("2", 1, "failed.go"), land("2", schemas.OutcomeFailed), work("3", 1, "waits.go")),
		dag("two", "s", work("4", 9, "a.go"), land("4", schemas.OutcomeSucceeded), &schemas.Run{Key: "5", Node: "a"}),
		dag("other", "o", work("6", 1, "other.go"), land("6", schemas.OutcomeSucceeded)))
	if files, more := LandedFiles(tree, "s"); !slices.Equal(files, []string{"a.go", "b.go"}) || more != 8 {
		t.Errorf("%v, and %d more", files, more)
	}
	if files, more := LandedFiles(tree, "none"); len(files)+more != 0 {
		t.Errorf("%v, and %d more", files, more)
	}
}
