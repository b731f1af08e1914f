package state

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"reconcile.dev/reconcile/schemas"
)

// someRecord is one of few, so that some have the same node or the same key.
func someRecord(r *rand.Rand) *schemas.Run {
	run := &schemas.Run{Node: fmt.Sprint("n", r.IntN(9)), NodeKey: fmt.Sprint(r.IntN(3)), Seq: r.IntN(3)}
	run.Key = fmt.Sprintf("dags/d/%s-%s-%d", run.Node, run.NodeKey, run.Seq)
	return run
}

// The results of a journal stay sorted as they come in, each once.
func TestJournalKeepsResultsSorted(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		o := &journalOwner{results: map[string]*schemas.Run{}}
		for range r.IntN(60) {
			run := someRecord(r)
			o.addResult(run.Key, run)
		}
		if !slices.IsSortedFunc(o.sorted, compareRuns) || len(o.sorted) != len(o.results) {
			t.Fatalf("%d results, %d of them in the list, sorted: %t", len(o.results), len(o.sorted), slices.IsSortedFunc(o.sorted, compareRuns))
		}
		for _, run := range o.sorted {
			if o.results[run.Key] != run {
				t.Fatalf("%s is not the last one of its key", run.Key)
			}
		}
	}
}

// What files and journals have is in one order, however it came.
func TestRecordsAreSorted(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		h := &lazyRuns{}
		var want []*schemas.Run
		for range r.IntN(20) {
			run := someRecord(r)
			if want = append(want, run); r.IntN(2) == 0 {
				h.files = append(h.files, newLazyRun(run.Key, run))
			} else {
				h.more = append(h.more, run)
			}
		}
		slices.SortFunc(want, compareRuns)
		same := func(a, b *schemas.Run) bool { return compareRuns(a, b) == 0 }
		if got := h.get(); !slices.EqualFunc(got, want, same) {
			t.Fatalf("got %d records in another order than %d", len(got), len(want))
		}
	}
}

// A turn sorts what is new, not the records that were there before.
func TestRecordsOfTheSameFilesAreSortedOnce(t *testing.T) {
	run := func(n int) *schemas.Run {
		return &schemas.Run{Node: fmt.Sprint("n", n), Key: fmt.Sprint("dags/d/n", n)}
	}
	files := []*lazyRun{newLazyRun("dags/d/n3", run(3)), newLazyRun("dags/d/n1", run(1))}
	first, second := &lazyRuns{files: files}, &lazyRuns{files: slices.Clone(files), more: []*schemas.Run{run(2)}}
	first.reuseSorted(nil)
	second.reuseSorted(first)
	if second.inFiles == nil || second.inFiles != first.inFiles {
		t.Error("the records of the same files are sorted again")
	}
	if all := second.get(); len(all) != 3 || !slices.IsSortedFunc(all, compareRuns) || len(first.get()) != 2 {
		t.Errorf("%d records, and %d before", len(all), len(first.get()))
	}
	other := &lazyRuns{files: files[:1]}
	if other.reuseSorted(second); other.inFiles == second.inFiles || len(other.get()) != 1 {
		t.Errorf("%d records of one file", len(other.get()))
	}
}
