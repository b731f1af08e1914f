package loop

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/mutants"
)

// What rests wakes at its time, and not only when something changes: a tree with schedules, limits of time, an archive and a memory, through
// which time passes, is always as one in which everything is decided each time. As the program does, a run over a tree that is
// as it was settled does nothing.
func TestDormantObjectsWakeInTime(t *testing.T) {
	seeds, rounds := mutants.Size(1, 2, 4), mutants.Size(12, 30, 60)
	var left, archived, scheduled, idle atomic.Int64
	t.Run("seeds", func(t *testing.T) {
		for seed := range uint64(seeds) {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				t.Parallel()
				e := &edits{t: t, dir: t.TempDir(), rnd: rand.New(rand.NewPCG(seed, 5)), now: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), timed: true}
				e.begin()
				e.mix()
				e.timers()
				e.run(e.dir, false)
				for range rounds {
					span := []time.Duration{time.Second, 20 * time.Minute, time.Hour, 5 * time.Hour, 25 * time.Hour, 60 * time.Hour}[e.rnd.IntN(6)]
					e.now = e.now.Add(span)
					done := span.String() + " passed"
					switch e.rnd.IntN(8) {
					case 0:
						done += ", " + e.remix(e.rnd.IntN(11), e.rnd.IntN(mixedObjects))
					case 1:
						e.still([]string{"Active", "Paused"}[e.rnd.IntN(2)])
						done += ", edit the session of those that wait"
					case 2:
						e.setArchive(10 + e.rnd.IntN(60))
						done += ", edit the settings"
					}
					left.Add(int64(min(e.dormantOf(schemas.SessionKind.Name), 1)))
					ran := e.compare(done)
					idle.Add(int64(e.idle))
					scheduled.Add(int64(ran))
				}
				archived.Add(int64(len(e.archive())))
			})
		}
	})
	t.Logf("objects were left in %d rounds, %d runs had nothing to do, %d nodes ran, %d files went to the archive", left.Load(), idle.Load(), scheduled.Load(), archived.Load())
	if n := int64(seeds * rounds); left.Load() < n/4 || idle.Load() < n/20 || scheduled.Load() < n/4 || archived.Load() < int64(seeds*mixedObjects/2) {
		t.Errorf("of %d rounds objects were left in %d; %d runs had nothing to do, %d nodes ran, %d files went to the archive",
			n, left.Load(), idle.Load(), scheduled.Load(), archived.Load())
	}
}

// timers adds DAGs whose schedules come due while they rest or wait, one whose time is limited, and observations of many days.
func (e *edits) timers() {
	e.setArchive(48)
	for i, session := range []string{"still", "s0", "s1"} {
		e.put(fmt.Sprintf("specs/timed/t%d.yaml", i), "DAG", fmt.Sprintf("t%d", i), fmt.Sprintf(
			"  session: %s\n  schedule: [{cron: \"0 %d * * *\"}]\n  nodes: [{name: x, run: [\"true\"]}]", session, 3*i))
		e.put(fmt.Sprintf("specs/timed/l%d.yaml", i), "DAG", fmt.Sprintf("l%d", i), fmt.Sprintf(
			"  session: %s\n  policy: {timeout: %dh}\n  nodes: [{name: x, run: [\"true\"]}, {name: y, agent: a0, prompt: look, needs: [x]}]", session, 1+i))
	}
	for i := range mixedObjects {
		e.put(fmt.Sprintf("specs/old/o-day-%d.yaml", i), "Observation", fmt.Sprintf("o-day-%d", i), fmt.Sprintf(
			"  agent: a0\n  issue: 20\n  timestamp: %q\n  entries: [{category: decision, content: day}]", e.now.Add(time.Duration(i*9)*time.Hour).Format(time.RFC3339)))
	}
}

func (e *edits) setArchive(hours int) {
	put(e.t, e.dir, schemas.SettingsPath, fmt.Sprintf(
		"apiVersion: reconcile.dev/v1alpha1\nkind: Settings\nmetadata: {name: settings}\nspec: {archive: {after: %dh}}\n", hours))
}

func (e *edits) archive() (files []string) {
	for p := range filesOf(e.t, e.dir) {
		if strings.HasPrefix(p, "state/archive/") {
			files = append(files, p)
		}
	}
	return files
}

// movable says of every file that it may go to the archive.
func movable(_ context.Context, paths []string) ([]string, error) { return slices.Clone(paths), nil }

// A watcher that left objects dormant moves them to the archive when their time has come, and asks again about those that may not be
// moved yet; so does the next process.
func TestWatchArchivesDormantObjects(t *testing.T) {
	e := &edits{t: t, dir: t.TempDir(), rnd: rand.New(rand.NewPCG(1, 6)), now: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), timed: true}
	e.begin()
	e.mix()
	e.timers()
	e.run(e.dir, false)
	e.now = e.now.Add(time.Hour)
	e.run(e.dir, false)
	dormant := e.dormantOf(schemas.ObservationKind.Name)
	if dormant < mixedObjects {
		t.Fatalf("%d observations are dormant", dormant)
	}
	fileNow := time.Now().Add(time.Hour) // no file is young, also where the test's clock stands at another time
	s, err := state.Open(e.dir, state.Options{Kinds: controllers.Schemas(), Now: func() time.Time { return e.now },
		FileNow: func() time.Time { return fileNow }, Build: "test", DormantFrom: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Fresh()
	start := e.now
	stuck := "specs/old/o-day-2.yaml"
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		now := func() time.Time { return start.Add(time.Since(began)) }
		l := &Loop{Store: s, Perform: newActor(always(0, schemas.OutcomeSucceeded)), Now: now, CPUs: 2, Memory: &shelf{store: s, dir: e.dir},
			Archivable: func(_ context.Context, paths []string) ([]string, error) {
				return slices.DeleteFunc(slices.Clone(paths), func(p string) bool { return p == stuck }), nil
			}}
		ctx, stop := context.WithCancel(t.Context())
		hints := make(chan Hint)
		done := make(chan error)
		var last *state.Tree
		go func() { r, err := l.Watch(ctx, hints); last = r.Tree; done <- err }()
		time.Sleep(90 * time.Hour)
		put(e.t, e.dir, "specs/sessions/s1.yaml", fmt.Sprintf(envelope, "Session", "s1", "  phase: Active\n  issue: 8"))
		hints <- Hint{Paths: []string{"specs/sessions/s1.yaml"}}
		time.Sleep(time.Hour)
		synctest.Wait()
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if !last.LeavesDormant() {
			t.Error("the watcher left nothing dormant")
		}
		e.now = now()
	})
	ofDay := slices.DeleteFunc(e.archive(), func(p string) bool { return !strings.Contains(p, "/o-day-") })
	if _, err := os.Stat(filepath.Join(e.dir, stuck)); err != nil || len(ofDay) < 4 {
		t.Errorf("of the observations of the day %q are in the archive: %v", ofDay, err)
	}
	stuck = ""
	e.run(e.dir, false)
	if _, err := os.Stat(filepath.Join(e.dir, "specs/old/o-day-2.yaml")); err == nil {
		t.Error("what could not be moved was not moved later")
	}
}
