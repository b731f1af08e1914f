package sessions

import (
	"encoding/json"
	"testing"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/mutants"
)

// TestPausedSessionsRest: a session rests that its spec pauses, unless something else holds it, counts its work or verifies it.
func TestPausedSessionsRest(t *testing.T) {
	t.Parallel()
	paused := schemas.SessionSpec{Phase: schemas.SessionPaused}
	for _, c := range []struct {
		name  string
		spec  schemas.SessionSpec
		edit  func(*schemas.SessionStatus)
		rests bool
	}{
		{"paused", paused, func(*schemas.SessionStatus) {}, true},
		{"active", schemas.SessionSpec{Phase: schemas.SessionActive}, func(s *schemas.SessionStatus) { s.Phase = schemas.SessionActive }, false},
		{"paused for want of a place", schemas.SessionSpec{Phase: schemas.SessionActive}, func(*schemas.SessionStatus) {}, false},
		{"paused for the first time", paused, func(s *schemas.SessionStatus) { s.Phase = schemas.SessionActive }, false},
		{"held", paused, func(s *schemas.SessionStatus) { s.Hold = schemas.VerbPause }, false},
		{"not ready", paused, func(s *schemas.SessionStatus) { s.Conditions[0].Status = schemas.False }, false},
		{"a node runs", paused, func(s *schemas.SessionStatus) { s.Running = 1 }, false},
		{"acted on", paused, func(s *schemas.SessionStatus) { s.Actions = []schemas.AppliedAction{{Name: "a"}} }, false},
		{"verified", paused, func(s *schemas.SessionStatus) { s.Quality = new(schemas.QualityStatus) }, false},
		{"with a budget", schemas.SessionSpec{Phase: schemas.SessionPaused, Budget: new(schemas.Budget)}, func(*schemas.SessionStatus) {}, false},
		{"to be verified", schemas.SessionSpec{Phase: schemas.SessionPaused, Quality: new(schemas.Quality)}, func(*schemas.SessionStatus) {}, false},
	} {
		text, err := json.Marshal(c.spec)
		if err != nil {
			t.Fatal(err)
		}
		e := &state.Entry{Ref: schemas.SessionKind.Ref("s"), Object: schemas.NewObject(schemas.SessionKind, schemas.Metadata{Name: "s"}, "specs/s.yaml", "s", text, nil)}
		st := &schemas.SessionStatus{Common: schemas.Common{Phase: schemas.SessionPaused, Conditions: []schemas.Condition{{Type: schemas.Ready, Status: schemas.True}}}}
		c.edit(st)
		e.SetStatus(st)
		tree := state.NewTree(schemas.Kinds{schemas.SessionKind}, nil, nil, e)
		if got := rests(tree)(e); got != c.rests {
			t.Errorf("%s: it rests: %t", c.name, got)
		}
	}
}

func TestRestMutants(t *testing.T) {
	mutants.Suite{Mutants: mutants.NoticedBy("TestPausedSessionsRest", []mutants.Mutant{
		{"a session rests that takes a place", "row.go", "spec.Phase != schemas.SessionPaused || ", ""},
		{"a session rests that an action holds", "row.go", ` && st.Hold == ""`, ""},
		{"a session rests that counts a budget", "row.go", " || spec.Budget != nil", ""},
	})}.Run(t)
}
