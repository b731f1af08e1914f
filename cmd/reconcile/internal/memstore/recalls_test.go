package memstore_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
)

var aboutRetries = memstore.Request{Agent: "engineer", Issue: 1, Context: "retries"}

// TestEqualRecallsAllCount: recalls of the same at the same time are as many as they are.
func TestEqualRecallsAllCount(t *testing.T) {
	x := newTree(t)
	id := x.capture(spec("engineer", 1, noon, "The adapter retries three times")).Observations[0].ID
	var wg sync.WaitGroup
	for range 8 {
		y := openTree(t, x.dir)
		wg.Go(func() {
			if _, err := y.Recall(t.Context(), aboutRetries); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	x.settle()
	if o, err := x.ByID(t.Context(), id); err != nil || o.RecallCount != 8 {
		t.Errorf("%d of 8 count, %v", o.RecallCount, err)
	}
}

// TestRepeatedRecallCountsOnce: who may ask again after a crash is counted once.
func TestRepeatedRecallCountsOnce(t *testing.T) {
	x := newTree(t)
	id := x.capture(spec("engineer", 1, noon, "The adapter retries three times")).Observations[0].ID
	r := aboutRetries
	r.Repeatable = true
	for range 3 {
		if got, err := x.Recall(t.Context(), r); err != nil || len(got.IDs) != 1 {
			t.Errorf("recalled %q, %v", got.IDs, err)
		}
	}
	x.settle()
	if o, err := x.ByID(t.Context(), id); err != nil || o.RecallCount != 1 || len(x.told) != 0 {
		t.Errorf("recalled %d times, %v, warned %q", o.RecallCount, err, x.told)
	}
}

// TestRecallThatCannotBeCounted tells what it found, and that it is not counted.
func TestRecallThatCannotBeCounted(t *testing.T) {
	x := newTree(t)
	x.capture(spec("engineer", 1, noon, "The adapter retries three times"))
	if err := os.WriteFile(filepath.Join(x.dir, "state/memory/records"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	r, err := x.Recall(t.Context(), aboutRetries)
	if err != nil || !strings.Contains(r.Text, "| The adapter retries three times\n") {
		t.Errorf("recalled %q, %v", r.Text, err)
	}
	if len(x.told) != 1 || !strings.HasPrefix(x.told[0], "what was recalled is not counted: ") {
		t.Errorf("warned: %q", x.told)
	}
}
