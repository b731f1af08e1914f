package slash

import (
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// TestStanding: what was accepted is in force once a run has decided the tree, and not before.
func TestStanding(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"actions", "questions", "escalated", "remember"} {
		a, err := txtar.ParseFile("testdata/decide/" + file + ".txtar")
		if err != nil {
			t.Fatal(err)
		}
		w := newWorld(t, a)
		all := Decide(w.input())
		before := w.after(nil, Decision{}, nil).input().Tree
		for _, v := range all {
			for _, s := range v.Specs {
				w.put(s.Path, encode(t, s))
			}
		}
		after := w.input().Tree
		for _, v := range all {
			if v.Handled.Outcome != schemas.HandledAccepted {
				continue
			}
			if got, _ := OutcomeOf(before, &v.Handled); got != schemas.HandledAccepted { // nothing is there: somebody removed it
				t.Errorf("%s, comment %d, gone: %q", file, v.Handled.Comment, got)
			}
			var specs []*state.Entry
			for _, s := range v.Specs {
				if k := s.Ref.Kind; k != schemas.ObservationKind.Name {
					specs = append(specs, w.entries[s.Ref])
				}
			}
			if got, _ := OutcomeOf(before.With(specs...), &v.Handled); got != "" && len(specs) > 0 {
				t.Errorf("%s, comment %d, not decided: %q", file, v.Handled.Comment, got)
			}
			if got, why := OutcomeOf(after, &v.Handled); got != schemas.HandledAccepted {
				t.Errorf("%s, comment %d: %q %s", file, v.Handled.Comment, got, why)
			}
		}
	}
}

// TestStandingRefused: somebody else's answer was quicker.
func TestStandingRefused(t *testing.T) {
	t.Parallel()
	a, err := txtar.ParseFile("testdata/decide/questions.txtar")
	if err != nil {
		t.Fatal(err)
	}
	w := newWorld(t, a)
	for _, name := range []string{"aa", "gh-200-1"} {
		w.put("specs/replies/"+name+".yaml", []byte(`{"apiVersion": "`+schemas.APIVersion+`", "kind": "Reply", "metadata": {"name": "`+
			name+`"}, "spec": {"clarification": "release", "type": "answer", "from": "`+name+`", "body": "Now."}}`))
	}
	h := &schemas.MirrorHandled{Comment: 200, Outcome: schemas.HandledAccepted, Specs: []string{"specs/replies/gh-200-1.yaml"}}
	got, why := OutcomeOf(settle.Tree(w.input().Tree, now, nil).Tree, h)
	const want = "Nothing of this was done. `an answer of gh-200-1 cannot be taken: CLR-42-002 is answered, and it would have to be " +
		"pending or stale`."
	if got != schemas.HandledRefused || why != want {
		t.Errorf("%q: %s", got, why)
	}
}
