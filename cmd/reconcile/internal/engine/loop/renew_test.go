package loop

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// crowd is a tree of n sessions that are paused.
func crowd(t *testing.T, n int) string {
	t.Helper()
	dir := t.TempDir()
	for i := range n {
		name := fmt.Sprintf("s%d", i)
		put(t, dir, "specs/"+name+".yaml", fmt.Sprintf(envelope, "Session", name, "  phase: Paused"))
	}
	return dir
}

// statuses counts the status files of sessions.
func statuses(dir string) int {
	found, _ := filepath.Glob(filepath.Join(dir, "state/sessions/*.json"))
	return len(found)
}

// A machine that is so busy that deciding takes minutes loses no lock: each object that is decided is a sign of life.
func TestLockIsKeptWhileDeciding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := crowd(t, 40)
		l := newLoop(t, dir, newActor(always(time.Second, schemas.OutcomeSucceeded)))
		l.Progress = func(string, int, int) { time.Sleep(4 * time.Second) }
		if _, err := l.Once(t.Context()); err != nil || statuses(dir) != 40 {
			t.Errorf("%d statuses, %v", statuses(dir), err)
		}
	})
}

// The same while the memory is settled, which shows its signs to the store itself.
func TestLockIsKeptWhileTheMemoryIsSettled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := tree(t, "    - {name: a, run: [x]}")
		observation(t, dir, "x")
		l, m, _ := newRemembering(t, dir, newActor(always(time.Second, schemas.OutcomeSucceeded)))
		m.between = func() {
			for range 40 {
				time.Sleep(4 * time.Second)
				l.Store.Working("memory")
			}
		}
		if r, err := l.Once(t.Context()); err != nil || job(t, r.Tree).Phase != schemas.DAGSucceeded {
			t.Error(err)
		}
	})
}

// One that hangs in the middle gives its lock up: what it decided is not written when it goes on.
func TestLockIsLostByOneThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := crowd(t, 3)
		l := newLoop(t, dir, newActor(always(time.Second, schemas.OutcomeSucceeded)))
		l.Record = func([]settle.Event) { time.Sleep(2 * time.Minute) }
		if _, err := l.Once(t.Context()); !errors.Is(err, state.ErrStolen) || statuses(dir) != 0 {
			t.Errorf("%d statuses, %v", statuses(dir), err)
		}
	})
}

// failing is a memory that is never done: what was decided before it is on disk by then.
type failing struct{ *shelf }

var errKilled = errors.New("killed")

func (failing) Settle(context.Context, *state.Tree) (MemoryResult, error) {
	return MemoryResult{}, errKilled
}

// A first run over a large tree that ends in the middle keeps what it decided, and the next one goes on from there.
func TestFirstRunKeepsWhatItDecided(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := crowd(t, state.Batch+10)
		l, m, _ := newRemembering(t, dir, newActor(always(time.Second, schemas.OutcomeSucceeded)))
		observation(t, dir, "x")
		l.Memory = failing{m}
		if _, err := l.Once(t.Context()); !errors.Is(err, errKilled) || statuses(dir) != state.Batch+10 {
			t.Errorf("%d statuses, %v", statuses(dir), err)
		}
		l, _, _ = newRemembering(t, dir, newActor(always(time.Second, schemas.OutcomeSucceeded)))
		if r, err := l.Once(t.Context()); err != nil || r.Wrote != 1 {
			t.Errorf("the second run wrote %d files, want that of the memory; %v", r.Wrote, err)
		}
	})
}
