package loop

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// actor performs effects by waiting: it stands in for commands where only their time and outcome matter, so that the
// loop can be tested on the fake clock of a synctest bubble. Everything else is real.
type actor struct {
	// act says how long the n-th run of a node (from 1) takes, and its outcome.
	act func(node string, n int) (time.Duration, string)
	// edit changes the record of a run; may be nil.
	edit func(*schemas.Run)
	// silent actors do not say that something started, as where it waits for room.
	silent bool
	// unseen is how long a run has gone on when its start is reported.
	unseen time.Duration
	// grace is how long a run that is cancelled takes to end.
	grace time.Duration
	// now is when runs start.
	now func() time.Time

	mu      sync.Mutex
	reports []settle.Report
	notify  chan struct{}
	cancel  map[string]context.CancelCauseFunc
	runs    map[string]int // by node
	log     []string       // "node outcome"
	wait    sync.WaitGroup
}

func newActor(act func(string, int) (time.Duration, string)) *actor {
	return &actor{
		act: act, now: time.Now, notify: make(chan struct{}, 1), cancel: map[string]context.CancelCauseFunc{}, runs: map[string]int{},
	}
}

func (a *actor) Submit(e settle.Effect) {
	ctx, cancel := context.WithCancelCause(context.Background())
	a.mu.Lock()
	a.runs[e.Node]++
	n := a.runs[e.Node]
	a.cancel[e.Key] = cancel
	a.mu.Unlock()
	a.wait.Go(func() { a.perform(ctx, e, n) })
}

var (
	errEnding = errors.New("reconcile is ending")
	errNoRoom = errors.New("write .reconcile/work: no space left on device")
)

// broken is the outcome of an effect that the performer could not do its part of.
const broken = "Broken"

func (a *actor) perform(ctx context.Context, e settle.Effect, n int) {
	took, outcome := a.act(e.Node, n)
	start := a.now()
	time.Sleep(a.unseen)
	if !a.silent {
		a.report(settle.Report{Kind: settle.Started, Key: e.Key, At: start, PID: 1})
	}
	select {
	case <-time.After(took):
	case <-ctx.Done():
		outcome = schemas.OutcomeCancelled
		time.Sleep(a.grace)
	}
	if errors.Is(context.Cause(ctx), errEnding) {
		a.report(settle.Report{Kind: settle.Released, Key: e.Key, Why: errEnding.Error()})
		return
	}
	if outcome == broken {
		a.report(settle.Report{Kind: settle.Broken, Key: e.Key, Err: errNoRoom})
		return
	}
	run := e.Claim()
	run.Outcome, run.StartedAt, run.FinishedAt = outcome, schemas.NewTime(start), schemas.NewTime(time.Now())
	if a.edit != nil {
		a.edit(&run)
	}
	a.mu.Lock()
	a.log = append(a.log, e.Node+" "+outcome)
	a.mu.Unlock()
	a.report(settle.Report{Kind: settle.Finished, Key: e.Key, At: time.Now(), Run: &run})
}

func (a *actor) report(r settle.Report) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.reports = append(a.reports, r)
	select {
	case a.notify <- struct{}{}:
	default:
	}
}

func (a *actor) Notify() <-chan struct{} { return a.notify }

func (a *actor) Drain() []settle.Report {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := a.reports
	a.reports = nil
	return out
}

func (a *actor) Hurry(string) {}

func (a *actor) Withdraw(key, why string) {
	if a.silent {
		a.Cancel(key, why)
	}
}

func (a *actor) Cancel(key, why string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if cancel := a.cancel[key]; cancel != nil {
		cancel(errors.New(why))
	}
}

func (a *actor) Tell(string, []settle.Message) {}

func (a *actor) Close(context.Context) error {
	a.mu.Lock()
	for _, cancel := range a.cancel {
		cancel(errEnding)
	}
	a.mu.Unlock()
	a.wait.Wait()
	return nil
}

func (a *actor) SetLimits(*schemas.RunSettings, int, map[string]int) {}
func (a *actor) Backlog() int                                        { return 0 }
func (a *actor) ReapAll(context.Context, []state.Orphan) error       { return nil }

func (a *actor) done() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.log)
}

// always makes every run take a time and end in an outcome.
func always(took time.Duration, outcome string) func(string, int) (time.Duration, string) {
	return func(string, int) (time.Duration, string) { return took, outcome }
}

const envelope = "apiVersion: reconcile.dev/v1alpha1\nkind: %s\nmetadata: {name: %s}\nspec:\n%s\n"

// tree makes a tree with an active session "work" and a DAG "job" with the given nodes.
func tree(t *testing.T, nodes string) string {
	dir := t.TempDir()
	put(t, dir, "specs/sessions/work.yaml", fmt.Sprintf(envelope, "Session", "work", "  phase: Active"))
	putDAG(t, dir, nodes)
	return dir
}

func putDAG(t *testing.T, dir, nodes string) {
	put(t, dir, "specs/dags/job.yaml", fmt.Sprintf(envelope, "DAG", "job", "  session: work\n  nodes:\n"+nodes))
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	p := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p+"~", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(p+"~", p); err != nil {
		t.Fatal(err)
	}
}

func newLoop(t *testing.T, dir string, p Performer) *Loop {
	t.Helper()
	s, err := state.Open(dir, state.Options{Kinds: controllers.Schemas(), Now: time.Now, NoCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return &Loop{Store: s, Perform: p, Now: time.Now, CPUs: 2}
}

func job(t *testing.T, tr *state.Tree) *schemas.DAGStatus {
	t.Helper()
	e := tr.Entry(schemas.Ref{Kind: "DAG", Name: "job"})
	if e == nil || !e.HasStatus() {
		t.Fatal("dag/job has no status")
	}
	return e.Status().(*schemas.DAGStatus)
}

func TestOnceWaitsForRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := tree(t, `    - {name: flaky, run: [x], retry: {limit: 2, backoff: 10s, factor: 2, max: 1m}}`)
		a := newActor(func(_ string, n int) (time.Duration, string) {
			if n < 3 {
				return time.Second, schemas.OutcomeFailed
			}
			return time.Second, schemas.OutcomeSucceeded
		})
		start := time.Now()
		r, err := newLoop(t, dir, a).Once(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := a.done(); !slices.Equal(got, []string{"flaky Failed", "flaky Failed", "flaky Succeeded"}) {
			t.Errorf("ran %q", got)
		}
		if took := time.Since(start).Round(time.Second); took != 33*time.Second {
			t.Errorf("took %s, want 10s + 20s of back-off and three runs of 1s", took)
		}
		if st := job(t, r.Tree); st.Phase != schemas.DAGSucceeded || st.Nodes.Of("flaky").Attempts != 3 {
			t.Errorf("phase %s after %d attempts", st.Phase, st.Nodes.Of("flaky").Attempts)
		}
	})
}

func TestOnceIsAFixedPoint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := tree(t, "    - {name: a, run: [x]}\n    - {name: b, run: [x], needs: [a]}")
		if _, err := newLoop(t, dir, newActor(always(time.Second, schemas.OutcomeSucceeded))).Once(t.Context()); err != nil {
			t.Fatal(err)
		}
		a := newActor(always(time.Second, schemas.OutcomeSucceeded))
		r, err := newLoop(t, dir, a).Once(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(a.done()) != 0 || r.Wrote != 0 {
			t.Errorf("a second run performed %q and wrote %d files", a.done(), r.Wrote)
		}
		if left, _ := filepath.Glob(filepath.Join(dir, ".reconcile/journal/*")); len(left) != 0 {
			t.Errorf("journals are left: %q", left)
		}
	})
}

func TestInterruptedWorkIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := tree(t, "    - {name: slow, run: [x]}")
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Second)
		defer stop()
		r, err := newLoop(t, dir, newActor(always(10*time.Second, schemas.OutcomeSucceeded))).Once(ctx)
		if err != nil || !r.Interrupted {
			t.Fatalf("interrupted %t, error %v", r.Interrupted, err)
		}
		if n := job(t, r.Tree).Nodes.Of("slow"); n.State == schemas.NodeRunning || n.Attempts != 0 {
			t.Errorf("state %s after %d attempts; nothing runs any more, and an interrupted attempt does not count",
				n.State, n.Attempts)
		}
		r, err = newLoop(t, dir, newActor(always(10*time.Second, schemas.OutcomeSucceeded))).Once(t.Context())
		if err != nil || job(t, r.Tree).Phase != schemas.DAGSucceeded {
			t.Errorf("the next run: %v, phase %s", err, job(t, r.Tree).Phase)
		}
	})
}

// TestBrokenPerformerUsesUpNoAttempt ends a run with the error, and the next one succeeds at the first attempt.
func TestBrokenPerformerUsesUpNoAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := tree(t, "    - {name: slow, run: [x]}\n    - {name: struck, run: [x]}")
		a := newActor(func(node string, _ int) (time.Duration, string) {
			if node == "struck" {
				return time.Second, broken
			}
			return time.Minute, schemas.OutcomeSucceeded
		})
		r, err := newLoop(t, dir, a).Once(t.Context())
		if !errors.Is(err, errNoRoom) || !strings.Contains(err.Error(), "struck") {
			t.Errorf("error %v; want the cause, and which effect it struck", err)
		}
		for name, n := range job(t, r.Tree).Nodes.All() {
			if n.State == schemas.NodeRunning || n.Attempts != 0 {
				t.Errorf("%s is %s after %d attempts", name, n.State, n.Attempts)
			}
		}
		r, err = newLoop(t, dir, newActor(always(time.Second, schemas.OutcomeSucceeded))).Once(t.Context())
		if st := job(t, r.Tree); err != nil || st.Phase != schemas.DAGSucceeded || st.Nodes.Of("struck").Attempts != 1 {
			t.Errorf("the next run: %v, phase %s, %d attempts", err, st.Phase, st.Nodes.Of("struck").Attempts)
		}
	})
}

func TestChangedNodeIsCancelledAndRunsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := tree(t, "    - {name: slow, run: [x]}")
		a := newActor(always(time.Minute, schemas.OutcomeSucceeded))
		time.AfterFunc(10*time.Second, func() { putDAG(t, dir, "    - {name: slow, run: [y]}") })
		r, err := newLoop(t, dir, a).Once(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := a.done(); !slices.Equal(got, []string{"slow Cancelled", "slow Succeeded"}) {
			t.Errorf("ran %q", got)
		}
		if st := job(t, r.Tree); st.Phase != schemas.DAGSucceeded {
			t.Errorf("phase %s", st.Phase)
		}
	})
}

// TestTwoLoopsShareTheWork lets two processes' worth of loops meet on one tree: every node runs once, and both end with
// the whole result.
func TestTwoLoopsShareTheWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var nodes strings.Builder
		for i := range 100 {
			fmt.Fprintf(&nodes, "    - {name: n%d, run: [x]}\n", i)
		}
		dir := tree(t, nodes.String())
		actors := []*actor{newActor(always(time.Second, schemas.OutcomeSucceeded)), newActor(always(time.Second, schemas.OutcomeSucceeded))}
		var wg sync.WaitGroup
		for _, a := range actors {
			l := newLoop(t, dir, a)
			wg.Go(func() {
				r, err := l.Once(t.Context())
				if err != nil {
					t.Error(err)
				} else if st := job(t, r.Tree); st.Phase != schemas.DAGSucceeded || st.Progress.Done != 100 {
					t.Errorf("phase %s, %d done", st.Phase, st.Progress.Done)
				}
			})
		}
		wg.Wait()
		if n := len(actors[0].done()) + len(actors[1].done()); n != 100 {
			t.Errorf("100 nodes ran %d times", n)
		}
	})
}

// TestWaitingForAnotherProcessIsTold has a second loop wait for what the first one performs: it says so once, not at once,
// and the first one, which waits for nobody, says nothing.
func TestWaitingForAnotherProcessIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := tree(t, "    - {name: slow, run: [x]}")
		first := newActor(always(time.Minute, schemas.OutcomeSucceeded))
		begin := time.Now()
		var told []string
		var wg sync.WaitGroup
		for i, a := range []*actor{first, newActor(nil)} {
			l := newLoop(t, dir, a)
			l.Warn = func(text string) {
				told = append(told, fmt.Sprintf("loop %d at %s: %s", i+1, time.Since(begin).Round(time.Second), text))
			}
			wg.Go(func() {
				<-time.After(time.Duration(i) * time.Second)
				if _, err := l.Once(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		want := fmt.Sprintf("loop 2 at 11s: waiting for slow of dag/job, which process %d has run for 11s; if that process hangs, "+
			"continue it (kill -CONT %[1]d), or end it (kill -9 %[1]d) and run again", os.Getpid())
		if len(told) != 1 || told[0] != want {
			t.Errorf("told %q, want %q", told, want)
		}
	})
}

// TestHolderText: what another process does is named, and since when.
func TestHolderText(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for want, r := range map[string]schemas.Run{
		"waiting for a of dag/d, which process 0 has run for 20s":                   {},
		"waiting for the landing of a of dag/d, which process 0 has run for 20s":    {Lands: "x"},
		"waiting for the inspection of a of dag/d, which process 0 has run for 20s": {Verifies: "x", Step: schemas.StepInspect},
		"waiting for the test of a of dag/d, which process 0 has run for 20s":       {Verifies: "x", Step: schemas.StepTest},
	} {
		r.Owner, r.Node, r.StartedAt = "dag/d", "a", schemas.NewTime(now.Add(-20*time.Second))
		if got := holderText([]*state.Claim{{Run: r}}, now); !strings.HasPrefix(got, want+";") {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// TestSecondLoopSeesTheEndOfWhatIsCancelled has an action cancel what the first of two loops runs, which takes a while
// to end: the second one must not report a state that does not last.
func TestSecondLoopSeesTheEndOfWhatIsCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := tree(t, "    - {name: slow, run: [x]}")
		first, second := newActor(always(time.Hour, schemas.OutcomeSucceeded)), newActor(nil)
		first.grace = 20 * time.Second
		time.AfterFunc(10*time.Second, func() {
			put(t, dir, "specs/actions/stop.yaml", fmt.Sprintf(envelope, "Action", "stop", "  {target: dag/job, verb: cancel}"))
		})
		var wg sync.WaitGroup
		for i, a := range []*actor{first, second} {
			l := newLoop(t, dir, a)
			wg.Go(func() {
				<-time.After(time.Duration(i) * time.Second)
				if r, err := l.Once(t.Context()); err != nil {
					t.Error(err)
				} else if st := job(t, r.Tree); st.Phase != schemas.DAGCancelled || st.Running != 0 {
					t.Errorf("loop %d ended with %s, %d running", i+1, st.Phase, st.Running)
				}
			})
		}
		wg.Wait()
		if got := first.done(); !slices.Equal(got, []string{"slow Cancelled"}) || len(second.done()) > 0 {
			t.Errorf("ran %q and %q", got, second.done())
		}
	})
}

// TestEndingRunsHaveTheirPlaces has an action cancel what the first of two loops runs, which takes a while to end: what the second one has
// to start waits for its place.
func TestEndingRunsHaveTheirPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := tree(t, "    - {name: slow, run: [x]}")
		put(t, dir, "specs/sessions/work.yaml", fmt.Sprintf(envelope, "Session", "work", "  maxConcurrentTasks: 1"))
		put(t, dir, "specs/dags/other.yaml", fmt.Sprintf(envelope, "DAG", "other", "  session: work\n  nodes:\n    - {name: next, run: [x]}"))
		time.AfterFunc(10*time.Second, func() {
			put(t, dir, "specs/actions/stop.yaml", fmt.Sprintf(envelope, "Action", "stop", "  {target: dag/job, verb: cancel}"))
		})
		var runs [2]schemas.Run
		var wg sync.WaitGroup
		for i, dag := range []string{"job", "other"} {
			a := newActor(always(time.Minute, schemas.OutcomeSucceeded))
			a.grace, a.edit = 20*time.Second, func(r *schemas.Run) { runs[i] = *r }
			l := newLoop(t, dir, a)
			l.Only = &settle.Selection{DAG: dag}
			wg.Go(func() {
				<-time.After(time.Duration(i) * time.Second)
				if _, err := l.Once(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if slow, next := &runs[0], &runs[1]; slow.Outcome != schemas.OutcomeCancelled || next.Outcome != schemas.OutcomeSucceeded ||
			next.StartedAt.Before(slow.FinishedAt.Time) {
			t.Errorf("slow ended at %s (%s), and next started at %s (%s)", slow.FinishedAt, slow.Outcome, next.StartedAt, next.Outcome)
		}
	})
}

func TestWatchFollowsHints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := tree(t, "    - {name: a, run: [x]}")
		a := newActor(always(time.Second, schemas.OutcomeSucceeded))
		hints := make(chan Hint)
		ctx, stop := context.WithCancel(t.Context())
		go func() {
			defer stop()
			time.Sleep(time.Minute)
			putDAG(t, dir, "    - {name: a, run: [y]}")
			hints <- Hint{Paths: []string{"specs/dags/job.yaml"}}
			time.Sleep(time.Minute)
		}()
		r, err := newLoop(t, dir, a).Watch(ctx, hints)
		if err != nil {
			t.Fatal(err)
		}
		if got := a.done(); !slices.Equal(got, []string{"a Succeeded", "a Succeeded"}) {
			t.Errorf("ran %q", got)
		}
		if r.Ran != 2 {
			t.Errorf("counted %d runs", r.Ran)
		}
	})
}

// TestLostStatus: what waits for an object is decided again when the object loses its status, which alone says what waits for it.
func TestLostStatus(t *testing.T) {
	for _, lose := range []func(string) error{os.Remove, func(path string) error { return os.WriteFile(path, []byte("{"), 0o644) }} {
		synctest.Test(t, func(t *testing.T) {
			const group = "  session: work\n  concurrency: {group: g}\n  nodes:\n    - {name: %s, run: [x]}"
			dir := tree(t, "    - {name: none, run: [x]}")
			put(t, dir, "specs/dags/job.yaml", fmt.Sprintf(envelope, "DAG", "job", fmt.Sprintf(group, "slow")))
			a := newActor(func(node string, _ int) (time.Duration, string) {
				return map[bool]time.Duration{true: time.Hour, false: time.Second}[node == "slow"], schemas.OutcomeSucceeded
			})
			hints := make(chan Hint)
			ctx, stop := context.WithCancel(t.Context())
			go func() {
				defer stop()
				time.Sleep(time.Minute)
				put(t, dir, "specs/dags/next.yaml", fmt.Sprintf(envelope, "DAG", "next", fmt.Sprintf(group, "waits")))
				hints <- Hint{Paths: []string{"specs/dags/next.yaml"}}
				time.Sleep(time.Minute)
				if got := a.done(); len(got) > 0 {
					t.Errorf("%q did not wait", got)
				}
				putDAG(t, dir, "    - {name: slow, run: [x]}") // it leaves the group
				if err := lose(filepath.Join(dir, "state/dags/job.json")); err != nil {
					t.Error(err)
				}
				hints <- Hint{Paths: []string{"specs/dags/job.yaml", "state/dags/job.json"}}
				time.Sleep(time.Minute)
			}()
			if _, err := newLoop(t, dir, a).Watch(ctx, hints); err != nil {
				t.Fatal(err)
			}
			if got := a.done(); !slices.Equal(got, []string{"waits Succeeded"}) {
				t.Errorf("ran %q", got)
			}
		})
	}
}

// TestWatcherSleepsWhileARunGoesOn counts the turns of a watcher during a run that is longer than its commit delay.
func TestWatcherSleepsWhileARunGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newActor(always(time.Hour, schemas.OutcomeSucceeded))
		l := newLoop(t, tree(t, "    - {name: a, run: [x]}"), a)
		ctx, stop := context.WithTimeout(t.Context(), 2*time.Hour)
		defer stop()
		turns := 0
		l.Observe = func([]settle.Report, *state.Tree) {
			if turns++; turns > 100 {
				stop()
			}
		}
		if _, err := l.Watch(ctx, nil); err != nil {
			t.Fatal(err)
		}
		if got := a.done(); !slices.Equal(got, []string{"a Succeeded"}) || turns > 100 {
			t.Errorf("ran %q in more than %d turns", got, min(turns, 100))
		}
	})
}

// TestEditWhileARunStarts edits a node whose run goes on already, and whose start nobody has reported.
func TestEditWhileARunStarts(t *testing.T) {
	for onChange, want := range map[string][]string{
		schemas.OnChangeMergePending: {"a Succeeded", "a Succeeded"},
		schemas.OnChangeReplace:      {"a Cancelled", "a Succeeded"},
		schemas.OnChangeAbort:        {"a Cancelled", "a Succeeded"},
	} {
		t.Run(onChange, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				nodes := "    - {name: a, run: [%s]}\n  policy: {onChange: %s}"
				dir := tree(t, fmt.Sprintf(nodes, "x", onChange))
				a := newActor(always(time.Minute, schemas.OutcomeSucceeded))
				a.unseen = 2 * time.Second
				hints := make(chan Hint)
				ctx, stop := context.WithCancel(t.Context())
				go func() {
					defer stop()
					time.Sleep(time.Second)
					putDAG(t, dir, fmt.Sprintf(nodes, "y", onChange))
					hints <- Hint{Paths: []string{"specs/dags/job.yaml"}}
					time.Sleep(time.Second / 2)
					a.mu.Lock()
					began := a.runs["a"]
					a.mu.Unlock()
					if began != 1 {
						t.Error("the new definition started beside the former one")
					}
					time.Sleep(3 * time.Minute)
				}()
				if _, err := newLoop(t, dir, a).Watch(ctx, hints); err != nil {
					t.Fatal(err)
				}
				if got := a.done(); !slices.Equal(got, want) {
					t.Errorf("ran %q, want %q", got, want)
				}
			})
		})
	}
}

func TestRemovedObjectLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := tree(t, "    - {name: a, run: [x]}")
		once := func() {
			t.Helper()
			if _, err := newLoop(t, dir, newActor(always(time.Second, schemas.OutcomeSucceeded))).Once(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		put(t, dir, "specs/agents/ada.yaml", fmt.Sprintf(envelope, "Agent", "ada", "  runner: {human: {}}"))
		once()
		for _, spec := range []string{"specs/dags/job.yaml", "specs/agents/ada.yaml"} {
			if err := os.Remove(filepath.Join(dir, spec)); err != nil {
				t.Fatal(err)
			}
		}
		once()
		if data, err := os.ReadFile(filepath.Join(dir, "state/agent-status.json")); err != nil || strings.Contains(string(data), "ada") {
			t.Errorf("agent-status.json: %s, %v", data, err)
		}
		for _, gone := range []string{"state/dags", "state/runs", "state/agents"} {
			if _, err := os.Stat(filepath.Join(dir, gone)); !os.IsNotExist(err) {
				t.Errorf("%s is still there: %v", gone, err)
			}
		}
		if _, err := os.Stat(filepath.Join(dir, "state/sessions/work.json")); err != nil {
			t.Errorf("the session's status: %v", err)
		}
	})
}

// TestInputsThatANodeMakes: what a node wrote is known when the next one starts, and in the end to everybody.
func TestInputsThatANodeMakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := tree(t, "    - {name: make, run: [x]}\n    - {name: use, run: [x], needs: [make], inputs: [\"src/*.go\"]}\n"+
			"    - {name: last, run: [x], needs: [use], inputs: [\"docs/*.md\"]}")
		put(t, dir, "specs/beside.yaml", fmt.Sprintf(envelope, "DAG", "beside", "  session: work\n  nodes:\n"+
			"    - {name: read, run: [x], inputs: [\"src/*.go\"]}"))
		a := newActor(func(node string, _ int) (time.Duration, string) {
			if node == "make" {
				put(t, dir, "src/made.go", "package made")
			}
			return pollSpecs / 10, schemas.OutcomeSucceeded
		})
		if _, err := newLoop(t, dir, a).Once(t.Context()); err != nil {
			t.Fatal(err)
		}
		ran := a.done()
		slices.Sort(ran)
		if want := []string{"last Succeeded", "make Succeeded", "read Succeeded", "read Succeeded", "use Succeeded"}; !slices.Equal(ran, want) {
			t.Errorf("ran %q, want %q", ran, want)
		}
	})
}

func TestEndlessChaseIsReported(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := tree(t, "    - {name: a, run: [x], inputs: [log.txt]}")
		n := 0
		a := newActor(func(string, int) (time.Duration, string) {
			n++
			put(t, dir, "log.txt", strings.Repeat("x", n))
			return time.Second, schemas.OutcomeSucceeded
		})
		_, err := newLoop(t, dir, a).Once(t.Context())
		if err == nil || !strings.Contains(err.Error(), "changes what it depends on") {
			t.Errorf("after %d runs: %v", n, err)
		}
	})
}

// TestHealedObservationLosesItsStatus: a reply or observation has a status only while something is wrong with it.
func TestHealedObservationLosesItsStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		const spec, status = "specs/observations/o.yaml", "state/observations/o.json"
		text := fmt.Sprintf(envelope, "Observation", "o", "  agent: ada\n  timestamp: 2026-02-27T10:00:00Z\n"+
			"  entries: [{category: decision, content: kept}]")
		for _, step := range []struct {
			text   string
			exists bool
		}{{strings.Replace(text, "decision", "whim", 1), true}, {text, false}} {
			put(t, dir, spec, step.text)
			if _, err := newLoop(t, dir, newActor(nil)).Once(t.Context()); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(dir, status)); (err == nil) != step.exists {
				t.Errorf("status exists: %t, want %t", err == nil, step.exists)
			}
		}
	})
}

func TestObjectRemovedWhileItRunsLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := tree(t, "    - {name: a, run: [x]}\n    - {name: b, run: [x]}\n    - {name: c, run: [x], needs: [b]}")
		time.AfterFunc(90*time.Second, func() {
			if err := os.Remove(filepath.Join(dir, "specs/dags/job.yaml")); err != nil {
				t.Error(err)
			}
		})
		a := newActor(always(time.Minute, schemas.OutcomeSucceeded))
		if _, err := newLoop(t, dir, a).Once(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := a.done(); !slices.Contains(got, "c Cancelled") {
			t.Errorf("ran %q", got)
		}
		for _, gone := range []string{"state/dags", "state/runs"} {
			if left, err := filepath.Glob(filepath.Join(dir, gone, "*")); err != nil || len(left) > 0 {
				t.Errorf("left behind: %q, %v", left, err)
			}
		}
	})
}

// TestWatchOutlivesABusyRepository: a rebase of the user's ends at some time, and so does the wait for the commit.
func TestWatchOutlivesABusyRepository(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		busy := errors.New("a rebase is in progress")
		l := newLoop(t, tree(t, "    - {name: a, run: [x]}"), newActor(always(time.Second, schemas.OutcomeSucceeded)))
		tries := 0
		l.Transient = func(err error) bool { return errors.Is(err, busy) }
		l.Commit = func(context.Context, *state.Tree, Scope) (Committed, error) {
			if tries++; tries < 4 {
				return Committed{}, busy
			}
			return Committed{Hash: "abc"}, nil
		}
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		r, err := l.Watch(ctx, nil)
		if err != nil || r.Commit != "abc" || tries > 6 {
			t.Errorf("commit %q after %d tries, error %v", r.Commit, tries, err)
		}
	})
}
