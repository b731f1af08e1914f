package memory

import (
	"bytes"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
)

func TestFind(t *testing.T) {
	s := Spec{Name: "a", Digest: "sha256:1", ObservationSpec: &schemas.ObservationSpec{
		Agent: "engineer", Issue: 3, Timestamp: schemas.NewTime(time.Date(2026, 2, 27, 0, 0, 0, 0, time.UTC)),
	}}
	for _, content := range []string{"first", "\n    }\n    {\n      \"id\": \"", "last"} {
		s.Entries = append(s.Entries, schemas.ObservationEntry{Category: schemas.CategoryError, Content: content})
	}
	f, _, err := Open(nil, s.Issue).Grow(nil, s)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range f.Observations {
		got, ok := Find(f.File, want.ID)
		if !ok || got.Content != want.Content || got.Source != "a" || got.Timestamp != want.Timestamp {
			t.Errorf("%s: %+v, %v", want.ID, got, ok)
		}
		for n := range bytes.Index(f.File, []byte(want.ID)) + len(want.ID) + 20 {
			if got, ok := Find(f.File[:n], want.ID); ok {
				t.Fatalf("cut at %d: %+v", n, got)
			}
		}
	}
	for _, id := range []string{"", "obs-engineer-3-1-aaaaaa", f.Observations[0].ID + "x", `", "`} {
		if got, ok := Find(f.File, id); ok {
			t.Errorf("%q: %+v", id, got)
		}
	}
}
