package memory

import (
	"bytes"
	"fmt"
	"testing"

	"reconcile.dev/reconcile/schemas"
)

// TestUndoTakesBackTheLast: also when the last compaction is about older observations, and when all of it happens at one
// time of the clock, undoing takes back the last compaction, and compacting again is a record of its own.
func TestUndoTakesBackTheLast(t *testing.T) {
	truth := Truth{Records: map[string]schemas.MemoryRecord{}}
	fold := func() Folded {
		t.Helper()
		f, err := NewFacts(truth).Fold(1, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	learn := func(n, hour int) {
		for range n {
			i := len(truth.Specs)
			text := fmt.Sprintf("Word%d has nothing to do with thing%d.", i, i)
			truth.Specs = append(truth.Specs, capture(fmt.Sprintf("cap-%d", i), 1, hour, text))
		}
	}
	record := func(r schemas.MemoryRecord, ok bool) {
		t.Helper()
		name, _, err := EncodeRecord(r)
		if _, known := truth.Records[name]; !ok || known || err != nil {
			t.Fatalf("%s: there %t, made %t, %v", name, known, ok, err)
		}
		truth.Records[name] = r
	}
	compact := func() {
		t.Helper()
		f := fold()
		record(NewFacts(truth).Compact(&f))
	}
	undo := func() {
		t.Helper()
		record(NewFacts(truth).Undo(1, schemas.StampOfTime(onTheDay(20)), "me", ""))
	}
	learn(30, 12)
	compact()
	learn(7, 11) // from a branch that was merged late
	before := fold()
	compact()
	for range 3 {
		undo()
		if got := fold(); !bytes.Equal(got.File, before.File) || !bytes.Equal(got.Archive, before.Archive) {
			t.Fatalf("undoing left %d and %d, there were %d and %d", len(got.Observations), len(got.Archived),
				len(before.Observations), len(before.Archived))
		}
		compact()
	}
}
