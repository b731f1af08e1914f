package state

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// TestWaits has a process wait: another one sees it, also after a checkpoint, and no longer once the process says nothing, stops waiting or
// ends.
func TestWaits(t *testing.T) {
	dir := t.TempDir()
	s, other := open(t, dir), open(t, dir)
	tree := load(t, other)
	j := journal(t, s)
	at := time.Date(2026, 2, 27, 10, 0, 0, 0, time.UTC)
	must(t, j.Wait(nil, at))
	must(t, j.Claim([]schemas.Run{run(1)}))
	look := func(want int, why string) {
		t.Helper()
		tree, _ = refresh(t, other, tree)
		waits, own := other.Waits()
		if len(waits) != min(want, 1) || want > 0 && (waits[0].Process != j.ID() || waits[0].Groups["tasks"] != want) || !own.IsZero() {
			t.Errorf("%s: waits %v, and this process since %v", why, waits, own)
		}
	}
	look(0, "it has claimed and waits for nothing")
	must(t, j.Wait(map[string]int{"tasks": 3}, at))
	look(3, "it waits")
	must(t, j.Finish([]schemas.Run{finished(1)}))
	must(t, j.Checkpoint(t.Context()))
	look(3, "after a checkpoint")
	if j.view.lines != 1 {
		t.Errorf("%d lines are in the journal after a checkpoint, want that of the wait", j.view.lines)
	}
	old := time.Now().Add(-time.Minute)
	must(t, os.Chtimes(filepath.Join(dir, j.path()), old, old))
	look(0, "it has said nothing for a minute")
	j.waitedAt = old
	must(t, j.Wait(map[string]int{"tasks": 3}, at))
	look(3, "it waits on")
	must(t, j.Wait(map[string]int{}, at))
	look(0, "it waits for nothing")
	must(t, j.Wait(map[string]int{"tasks": 2}, at))
	look(2, "it waits again")
	must(t, j.Close())
	look(0, "it has ended")
}

// TestTenure begins with a claim, unless one lasts; who begins to wait has none, and comes after those who wait.
func TestTenure(t *testing.T) {
	v := newJournalView("p", &layout{kinds: testKinds, specs: "specs", state: "state"})
	at := func(seconds float64) time.Time {
		return time.Date(2026, 2, 27, 10, 0, 0, 0, time.UTC).Add(time.Duration(seconds * float64(time.Second)))
	}
	step := func(op string, seconds float64, since float64, in int) {
		t.Helper()
		when := schemas.NewTime(at(seconds))
		v.applyWait(line{Op: op, At: &when, Groups: map[string]int{"tasks": 1}})
		if w := (Wait{Since: v.since}); !v.since.Equal(at(since)) || w.Tenure(at(seconds)) != in {
			t.Errorf("%s at %v: since %v, tenure %d", op, seconds, v.since, w.Tenure(at(seconds)))
		}
	}
	step(opWait, 5, 4, 0)
	step(opClaim, 6, 6, 1)
	step(opClaim, 6.5, 6, 1)
	step(opWait, 8, 6, 0)
	step(opClaim, 8, 8, 1)
}
