package memory

import (
	"bytes"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// capture is an Observation of one entry.
func capture(name string, issue, hour int, content string, supersedes ...string) Spec {
	return Spec{Name: name, Digest: "sha256:" + name, ObservationSpec: &schemas.ObservationSpec{
		Agent: "engineer", Issue: issue, Timestamp: schemas.NewTime(onTheDay(hour)),
		Entries: []schemas.ObservationEntry{
			{Category: schemas.CategoryDecision, Content: content, Supersedes: supersedes},
		},
	}}
}

// TestReplacedStaysReplaced: removing the newer observation does not bring the older one back, whether the store grew
// step by step or is made anew.
func TestReplacedStaysReplaced(t *testing.T) {
	older := capture("older", 1, 10, "Retry five times.")
	id := idsOf(older)[0]
	newer := capture("newer", 2, 11, "Retry three times.", id)
	by := idsOf(newer)[0]
	removed := schemas.MemoryRecord{
		Type: schemas.RecordRemoved, Issue: 2, IDs: []string{by}, At: schemas.StampOfTime(onTheDay(12)),
	}
	first, _, err := Open(nil, older.Issue).Grow(nil, older)
	if err != nil {
		t.Fatal(err)
	}
	_, effects, err := Open(nil, newer.Issue).Grow(nil, newer)
	if err != nil {
		t.Fatal(err)
	}
	grown, err := Apply(first.File, 1, effects)
	if err != nil {
		t.Fatal(err)
	}
	facts := NewFacts(Truth{Specs: []Spec{older, newer}, Records: map[string]schemas.MemoryRecord{"removed": removed}})
	anew, err := facts.Fold(1, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(anew.Observations) != 1 || anew.Observations[0].SupersededBy != by {
		t.Errorf("after the removal: %+v", anew.Observations)
	}
	if !bytes.Equal(anew.File, grown.File) {
		t.Errorf("made anew\n%s\ngrown\n%s", anew.File, grown.File)
	}
	gone, err := facts.Fold(2, nil, nil)
	if err != nil || len(gone.Observations) != 0 {
		t.Errorf("the removed one is there: %+v, %v", gone.Observations, err)
	}
}

// onTheDay is an hour of the day on which these tests play.
func onTheDay(hour int) time.Time { return time.Date(2026, 2, 27, hour, 0, 0, 0, time.UTC) }
