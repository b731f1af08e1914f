package memory

import (
	"fmt"
	"testing"

	"reconcile.dev/reconcile/schemas"
)

// TestMergedWasRecalledAsOften: a merged observation counts each recall once, however many of its originals were in it,
// and those that it was in itself.
func TestMergedWasRecalledAsOften(t *testing.T) {
	truth := Truth{Records: map[string]schemas.MemoryRecord{}}
	var ids []string
	for i := range 3 {
		s := capture(fmt.Sprintf("cap-%d", i), 1, 10+i, fmt.Sprintf("Retry the adapter's calls %d times.", i))
		truth.Specs = append(truth.Specs, s)
		ids = append(ids, idsOf(s)...)
	}
	recall := func(hour int, ids ...string) {
		truth.Records[fmt.Sprintf("recalled-%d", hour)] = schemas.MemoryRecord{
			Type: schemas.RecordRecalled, Issue: 1, IDs: ids, At: schemas.StampOfTime(onTheDay(hour)),
		}
	}
	recall(13, ids...)
	recall(14, ids...)
	recall(15, ids[0])
	before, err := NewFacts(truth).Fold(1, nil, nil)
	if err != nil || len(before.Observations) != 3 || before.Observations[0].RecallCount != 3 {
		t.Fatalf("%+v, %v", before.Observations, err)
	}
	truth.Records["compacted"] = schemas.MemoryRecord{
		Type: schemas.RecordCompacted, Issue: 1, IDs: ids, At: schemas.StampOfTime(onTheDay(12)),
	}
	if got := recallsOfOne(t, truth); got.RecallCount != 3 {
		t.Errorf("three recalls of three became %d", got.RecallCount)
	}
	recall(16, recallsOfOne(t, truth).ID)
	if got := recallsOfOne(t, truth); got.RecallCount != 4 {
		t.Errorf("with its own it is %d", got.RecallCount)
	}
}

// recallsOfOne folds to the one observation that is left.
func recallsOfOne(t *testing.T, truth Truth) schemas.Observation {
	t.Helper()
	f, err := NewFacts(truth).Fold(1, nil, nil)
	if err != nil || len(f.Observations) != 1 {
		t.Fatalf("%+v, %v", f.Observations, err)
	}
	return f.Observations[0]
}
