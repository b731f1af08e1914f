package memstore_test

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/schemas"
)

func (x *tree) remove(ids ...string) {
	x.t.Helper()
	if err := x.Remove(x.t.Context(), ids, "me", "it is wrong"); err != nil {
		x.t.Fatal(err)
	}
}

// recalled are the ids of a recall.
func (x *tree) recalled(issue int, about string) []string {
	x.t.Helper()
	r, err := x.Recall(x.t.Context(), memstore.Request{Agent: "engineer", Issue: issue, Context: about})
	if err != nil {
		x.t.Fatal(err)
	}
	return r.IDs
}

// TestRemovingResurrectsNothing: what a removed observation had replaced stays replaced, before and after the next run.
func TestRemovingResurrectsNothing(t *testing.T) {
	x := newTree(t)
	older := x.capture(spec("engineer", 1, noon, "Retry five times")).Observations[0].ID
	s := spec("engineer", 2, noon.Add(time.Hour), "Retry three times")
	s.Entries[0].Supersedes = []string{older}
	newer := x.capture(s).Observations[0].ID
	x.settle()
	x.remove(newer)
	before := x.read("state/memory/issue-1.json")
	for range 2 {
		if got := x.list(memstore.Filter{}); len(got) != 0 {
			t.Errorf("listed %q", got)
		}
		if got := x.list(memstore.Filter{Superseded: memstore.Only}); !slices.Equal(got, []string{older}) {
			t.Errorf("superseded are %q", got)
		}
		if got := x.recalled(1, "retry times"); len(got) != 0 {
			t.Errorf("recalled %q", got)
		}
		x.settle()
		x.settleWith(x.Rebuild)
	}
	if after := x.read("state/memory/issue-1.json"); !bytes.Equal(before, after) {
		t.Errorf("the run changed\n%s\nto\n%s", before, after)
	}
}

// TestRemovedAndCapturedAgain: the same capture brings nothing back; a new one of the same text is a new statement.
func TestRemovedAndCapturedAgain(t *testing.T) {
	x := newTree(t)
	capture := func(at time.Time) *schemas.ObservationSpec { return spec("engineer", 1, at, "Retry three times") }
	first := x.capture(capture(noon)).Observations[0].ID
	x.remove(first)
	if again := x.capture(capture(noon)); !again.Known || len(again.Observations) != 0 {
		t.Errorf("captured again: %+v", again)
	}
	x.settle()
	if got := x.list(memstore.Filter{}); len(got) != 0 {
		t.Fatalf("listed %q", got)
	}
	later := x.capture(capture(noon.Add(time.Hour))).Observations
	if len(later) != 1 || later[0].ID == first {
		t.Fatalf("stated anew: %+v", later)
	}
	x.settle()
	if got := x.list(memstore.Filter{}); !slices.Equal(got, []string{later[0].ID}) {
		t.Errorf("listed %q", got)
	}
}
