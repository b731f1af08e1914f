package memory

import (
	"testing"

	"reconcile.dev/reconcile/schemas"
)

func TestFitting(t *testing.T) {
	entry := func(category, content, repeats string) schemas.ObservationEntry {
		return schemas.ObservationEntry{Category: category, Content: content, Repeats: repeats}
	}
	const decision, fact = schemas.CategoryDecision, schemas.CategoryKeyFact
	older := schemas.Observation{ID: "obs-a-1-1-aaaaaa", Category: decision, Content: "Retry a failed upload five times."}
	for _, c := range []struct {
		name    string
		entries []schemas.ObservationEntry
		want    int
	}{
		{"one", []schemas.ObservationEntry{entry(fact, "Ports are free.", "")}, 0},
		{"by pairs of words", []schemas.ObservationEntry{
			entry(decision, "Ports are free.", ""), entry(fact, "Retry a failed upload three times.", ""),
		}, 1},
		{"by words", []schemas.ObservationEntry{
			entry(decision, "Ports are free.", ""), entry(fact, "An upload has no retry.", ""),
		}, 1},
		{"by category", []schemas.ObservationEntry{
			entry(fact, "Ports are free.", ""), entry(decision, "Pools are closed.", ""),
		}, 1},
		{"the first", []schemas.ObservationEntry{
			entry(fact, "Ports are free.", ""), entry(fact, "Pools are closed.", ""),
		}, 0},
		{"rather a new one", []schemas.ObservationEntry{
			entry(decision, "Retry a failed upload five times.", "obs-a-1-2-bbbbbb"), entry(fact, "Pools are closed.", ""),
		}, 1},
		{"not itself", []schemas.ObservationEntry{
			entry(decision, older.Content, older.ID), entry(fact, "Pools are closed.", "obs-a-1-2-bbbbbb"),
		}, 1},
		{"none", []schemas.ObservationEntry{entry(decision, older.Content, older.ID)}, -1},
	} {
		if got := BestReplacement(c.entries, &older); got != c.want {
			t.Errorf("%s: entry %d, want %d", c.name, got, c.want)
		}
	}
}
