package lexical_test

import (
	"slices"
	"testing"

	"reconcile.dev/reconcile/vectors/lexical"
)

// TestT3_SearchFindsWhatIsRelevant is scenario T3: words are found in titles and bodies, also as parts of names and
// paths, the best come first, and no more come than are wanted.
func TestT3_SearchFindsWhatIsRelevant(t *testing.T) {
	set := newSet(t, lexical.Segment{Index: build(t, []lexical.Document{
		{Title: "Chose a connection pool of ten", Body: "Ten connections for each process; the pool is shared."},
		{Title: "The linter blocks merges", Body: "It runs on every push, and has no connection to the database."},
		{Title: "DbAdapter is the one interface", Body: "All of src/db/adapter.go is behind it."},
		{Title: "Staging has a copy of the data", Body: "It is made every night."},
	})})
	for _, c := range []struct {
		query string
		limit int
		want  []int
	}{
		{"connection pool", 10, []int{0, 1}},
		{"connection pool", 1, []int{0}},
		{"adapter", 10, []int{2}},
		{"ADAPTER.GO", 10, []int{2}},
		{"copy pool", 10, []int{0, 3}},
		{"zebra", 10, nil},
		{"", 10, nil},
	} {
		var got []int
		for _, hit := range search(t, set, c.query, c.limit, nil) {
			got = append(got, hit.Doc)
		}
		if c.query == "copy pool" {
			slices.Sort(got) // each has one of the words
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%q, at most %d: documents %v, want %v", c.query, c.limit, got, c.want)
		}
	}
	onlyLast := func(doc int) bool { return doc == 1 }
	if hits := search(t, set, "connection", 10, onlyLast); len(hits) != 1 || hits[0].Doc != 1 {
		t.Errorf("filtered: %v, want document 1 alone", hits)
	}
}
