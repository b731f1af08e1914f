package loop

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// chain is a DAG of n nodes that each need the one before.
func chain(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "    - {name: n%d, run: [x], needs: [%s]}\n", i, strings.Join([]string{fmt.Sprint("n", i-1)}[:min(i, 1)], ""))
	}
	return b.String()
}

// holdings notes for how long the lock of the tree is held, each time.
type holdings struct {
	slog.Handler
	since time.Time
	times []time.Duration
}

func (h *holdings) Enabled(context.Context, slog.Level) bool { return true }

func (h *holdings) Handle(_ context.Context, r slog.Record) error {
	tree := false
	r.Attrs(func(a slog.Attr) bool {
		tree = tree || a.Key == "filePath" && a.Value.String() == ".reconcile/tree"
		return true
	})
	switch {
	case !tree:
	case r.Message == "lock acquired":
		h.since = time.Now()
	case r.Message == "lock released":
		h.times = append(h.times, time.Since(h.since))
	}
	return nil
}

// heldFor runs a chain whose nodes take a time each, and returns for how long the lock was held.
func heldFor(t *testing.T, linger, silent bool, nodes int, each time.Duration) []time.Duration {
	t.Helper()
	h := &holdings{}
	synctest.Test(t, func(t *testing.T) {
		a := newActor(always(each, schemas.OutcomeSucceeded))
		a.silent = silent
		s, err := state.Open(tree(t, chain(nodes)), state.Options{Kinds: controllers.Schemas(), Now: time.Now, NoCache: true, Log: slog.New(h)})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		l := &Loop{Store: s, Perform: a, Now: time.Now, CPUs: 2, Linger: linger}
		if r, err := l.Once(t.Context()); err != nil || r.Ran != nodes {
			t.Fatalf("ran %d of %d: %v", r.Ran, nodes, err)
		}
	})
	return h.times
}

// A chain of quick commands does not take the lock for each, and holds it for a bounded time.
func TestLockLingersOverQuickCommands(t *testing.T) {
	const nodes, each = 100, 2 * time.Millisecond
	long, short := heldFor(t, false, false, nodes, each), heldFor(t, true, false, nodes, each)
	if most := nodes / 5; len(long) < nodes || len(short) > most {
		t.Errorf("the lock was taken %d times, and %d times where it lingers: want at least %d, and at most %d", len(long), len(short), nodes, most)
	}
	for _, d := range short {
		if d > lockLinger+2*startFor {
			t.Errorf("the lock was held for %s", d)
		}
	}
}

// While a command runs that is not quick, others can have the lock.
func TestLockDoesNotLingerOverSlowCommands(t *testing.T) {
	for _, silent := range []bool{false, true} {
		for _, d := range heldFor(t, true, silent, 3, time.Second) {
			if d > 2*startFor {
				t.Errorf("the lock was held for %s", d)
			}
		}
	}
}

// What is started runs already while the rest of the turn writes.
func TestEffectsStartBeforeStatusesAreWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := tree(t, chain(1))
		early := false
		a := newActor(func(string, int) (time.Duration, string) {
			_, err := os.Stat(filepath.Join(dir, "state/dags/job.json"))
			early = os.IsNotExist(err)
			return time.Second, schemas.OutcomeSucceeded
		})
		l := newLoop(t, dir, a)
		l.Record = func([]settle.Event) { time.Sleep(time.Millisecond) } // told between the two
		if _, err := l.Once(t.Context()); err != nil || !early {
			t.Errorf("started before its status was written: %t, %v", early, err)
		}
	})
}
