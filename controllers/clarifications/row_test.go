package clarifications

import (
	"encoding/json"
	"testing"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/mutants"
)

// TestAnsweredQuestionsRest: a question that a person asked rests once it was answered, and a reply once its question has taken it.
func TestAnsweredQuestionsRest(t *testing.T) {
	t.Parallel()
	entry := func(kind schemas.Kind, name string, spec schemas.Spec) *state.Entry {
		text, err := json.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		return &state.Entry{Ref: kind.Ref(name), Object: schemas.NewObject(kind, schemas.Metadata{Name: name}, "specs/"+name+".yaml", name, text, spec.References())}
	}
	for _, c := range []struct {
		name               string
		ready              schemas.ConditionStatus
		run, source        string
		questions, replies bool
	}{
		{"answered", schemas.True, "", fromReply + "r", true, true},
		{"open", schemas.False, "", fromReply + "r", false, true},
		{"asked by a run", schemas.True, "dags/d/n-1", fromReply + "r", false, true},
		{"the reply is not taken", schemas.True, "", fromReply + "other", true, false},
	} {
		q := entry(schemas.ClarificationRequestKind, "q", &schemas.ClarificationRequestSpec{Issue: 1, From: "a", To: "b", Run: c.run})
		q.SetStatus(&schemas.ClarificationRequestStatus{ID: "CLR-1-001", Thread: []schemas.ThreadEntry{{Source: c.source}},
			Common: schemas.Common{Conditions: []schemas.Condition{{Type: schemas.Ready, Status: c.ready}}}})
		r := entry(schemas.ReplyKind, "r", &schemas.ReplySpec{Clarification: "q"})
		tree := state.NewTree(schemas.Kinds{schemas.ClarificationRequestKind, schemas.ReplyKind}, nil, nil, q, r)
		if got := rests(tree)(q); got != c.questions {
			t.Errorf("%s: the question rests: %t", c.name, got)
		}
		if got := replyRests(tree)(r); got != c.replies {
			t.Errorf("%s: the reply rests: %t", c.name, got)
		}
	}
}

func TestRestMutants(t *testing.T) {
	mutants.Suite{Mutants: mutants.NoticedBy("TestAnsweredQuestionsRest", []mutants.Mutant{
		{"a question rests before it is answered", "row.go", " && b.Ready == schemas.True", ""},
		{"a question of a run rests", "row.go", " && spec.Run == \"\"", ""},
		{"a reply rests before it is taken", "row.go", "return turn.Source == fromReply+e.Name })", "return turn.Source != \"-\" })"},
	})}.Run(t)
}
