package controllers

import (
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// TestArchivable: what has had its effect for long enough goes to the archive, by the month of the effect, and nothing else.
func TestArchivable(t *testing.T) {
	const day = 24 * time.Hour
	now := time.Date(2026, 6, 15, 12, 0, 0, 0, time.UTC)
	old, young := now.Add(-40*day), now.Add(-10*day)
	ready := func(at time.Time) schemas.Common {
		c := schemas.Common{ObservedDigest: "d"}
		c.Conditions = []schemas.Condition{{Type: schemas.Ready, Status: "True", LastTransitionTime: schemas.NewTime(at)}}
		return c
	}
	entry := func(k schemas.Kind, name, path string, spec schemas.Spec, status schemas.Status) *state.Entry {
		o := schemas.NewObject(k, schemas.Metadata{Name: name}, path, "d", canonical(spec), nil)
		e := &state.Entry{Ref: schemas.Ref{Kind: k.Name, Name: name}, Object: o}
		e.SetStatus(status)
		return e
	}
	action := func(name, dir, phase string, at time.Time) *state.Entry {
		st := &schemas.ActionStatus{Common: ready(at)}
		st.Phase = phase
		return entry(schemas.ActionKind, name, dir+"/"+name+".yaml", &schemas.ActionSpec{}, st)
	}
	seen := func(name string, at time.Time, status schemas.Status) *state.Entry {
		return entry(schemas.ObservationKind, name, "specs/observations/"+name+".yaml",
			&schemas.ObservationSpec{Timestamp: schemas.NewTime(at), Entries: []schemas.ObservationEntry{{
				Content: `"timestamp":"2020-01-01T00:00:00Z"`, Digests: map[string]string{"timestamp": "2020-01-01T00:00:00Z"}}}}, status)
	}
	thread := func(name, phase string) *state.Entry {
		st := &schemas.ClarificationRequestStatus{Common: ready(old), ID: "CLR-1-00" + name, ResolvedAt: schemas.NewTime(old)}
		if st.Phase = phase; phase != schemas.ClarificationResolved {
			st.ResolvedAt = schemas.Time{}
		}
		return entry(schemas.ClarificationRequestKind, "q"+name, "specs/q"+name+".yaml", &schemas.ClarificationRequestSpec{}, st)
	}
	reply := func(name, to string) *state.Entry {
		return entry(schemas.ReplyKind, name, "specs/replies/"+name+".yaml", &schemas.ReplySpec{Clarification: to}, nil)
	}
	edited := seen("edited", old, nil)
	edited.Accepted = "another"
	entries := []*state.Entry{
		action("done", "specs/actions", schemas.ActionApplied, old), action("late", "specs/actions", schemas.ActionApplied, young),
		action("open", "specs/actions", "Pending", old), action("there", "state/archive/actions/2026-05", schemas.ActionApplied, old),
		seen("old", old, nil), seen("young", young, nil), seen("wrong", old, &schemas.ObservationStatus{}), edited,
		thread("1", schemas.ClarificationResolved), thread("2", schemas.ClarificationAbandoned), thread("3", "pending"),
		reply("by-id", "CLR-1-001"), reply("by-name", "q2"), reply("to-open", "q3"), reply("to-none", "q9"),
	}
	tree := state.NewTree(Schemas(), nil, nil, entries...)
	moves, next := Archivable(tree, now, false)
	var got []string
	for _, m := range moves {
		got = append(got, m.From+" → "+m.To)
	}
	want := `specs/actions/done.yaml → state/archive/actions/2026-05/done.yaml
specs/observations/old.yaml → state/archive/observations/2026-05/old.yaml
specs/replies/by-id.yaml → state/archive/replies/2026-05/by-id.yaml
specs/replies/by-name.yaml → state/archive/replies/2026-05/by-name.yaml`
	if text := strings.Join(got, "\n"); text != want {
		t.Errorf("moves:\n%s\nwant:\n%s", text, want)
	}
	if due := young.Add(30 * day); !next.Equal(due) {
		t.Errorf("the next is due at %v, want %v", next, due)
	}
	tree.Settings().Archive.After = new(schemas.Duration)
	if moves, next := Archivable(tree, now, false); len(moves) > 0 || !next.IsZero() {
		t.Errorf("with after 0: %v, %v", moves, next)
	}
}
