package memory

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
)

func TestIDRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	const signs = "abcxyz019._-"
	for range 5000 {
		agent := []byte{signs[r.IntN(9)]}
		for range r.IntN(61) {
			agent = append(agent, signs[r.IntN(len(signs))])
		}
		agent = append(agent, signs[r.IntN(9)])
		issue, at := r.IntN(1<<31-1), time.UnixMilli(r.Int64N(250e12))
		id := NewID(string(agent), issue, at, "name", r.IntN(50), "content")
		gotAgent, gotIssue, ms, ok := ParseID(id)
		if !ok || gotAgent != string(agent) || gotIssue != issue || ms != at.UnixMilli() ||
			!schemas.IsObservationID(id) {
			t.Fatalf("%s: %q %d %d %t", id, gotAgent, gotIssue, ms, ok)
		}
	}
}

// TestIDTells: the last part follows from the name, the place and the content, and from nothing else.
func TestIDTells(t *testing.T) {
	at := time.UnixMilli(1709035200000)
	id := NewID("engineer", 29, at, "n", 0, "c")
	if !strings.HasPrefix(id, "obs-engineer-29-1709035200000-") || id != NewID("engineer", 29, at, "n", 0, "c") {
		t.Error(id)
	}
	for _, other := range []string{NewID("engineer", 29, at, "m", 0, "c"), NewID("engineer", 29, at, "n", 1, "c"),
		NewID("engineer", 29, at, "n", 0, "d"), NewID("engineer", 29, at, "n0", 0, "c")} {
		if other == id {
			t.Errorf("%s is the id of two observations", id)
		}
	}
	if id := NewID("a", 0, time.Time{}, "", 0, ""); !strings.HasPrefix(id, "obs-a-0-0-") {
		t.Error(id)
	}
}

// TestEntriesDiffer: entries with one content are observations of their own.
func TestEntriesDiffer(t *testing.T) {
	e := schemas.ObservationEntry{Category: schemas.CategoryKeyFact, Content: "same"}
	s := Spec{Name: "n", ObservationSpec: &schemas.ObservationSpec{Agent: "a", Entries: []schemas.ObservationEntry{e,
		e, e}}}
	ids := idsOf(s)
	if ids[0] == ids[1] || ids[1] == ids[2] || ids[0] == ids[2] {
		t.Error(ids)
	}
}

func FuzzParseID(f *testing.F) {
	for _, s := range []string{"obs-engineer-29-1709035200000-a1b2c3", "obs-a-b-0-0-abcdef", "obs--1-1-aaaaaa",
		"obs-a-01-1-aaaaaa",
		"obs-a-1-1-aaaaa", "obs-../x-1-1-aaaaaa", "obs-a-99999999999-1-aaaaaa", "obs-a-1-1234567890123456-aaaaaa",
		"obs-1-1-aaaaaa",
		"obs-" + strings.Repeat("a", 64) + "-1-1-aaaaaa", "obs-a--1-1-aaaaaa"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if _, _, _, ok := ParseID(s); ok != schemas.IsObservationID(s) {
			t.Errorf("%q: %t, by its form %t", s, ok, !ok)
		}
	})
}
