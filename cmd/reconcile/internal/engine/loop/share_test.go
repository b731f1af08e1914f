package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"reconcile.dev/reconcile/controllers/budgets"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// remote is a Share whose other reconcilers do as the test says.
type remote struct {
	refuse int // pushes that others are quicker than; negative: all
	away   func() bool
	full   bool          // it answers, and takes no push
	slow   time.Duration // what a push takes
	log    []string
	done   []string // effects whose results were pushed
	others map[string]time.Time
	owed   []string // by killed runs
}

var errAway = errors.New("no route to host")

func (r *remote) say(what string) error {
	if r.away != nil && r.away() {
		r.log = append(r.log, "away")
		return errAway
	}
	r.log = append(r.log, what)
	return nil
}

func (r *remote) Fetch(_ context.Context, turn bool) (bool, error) {
	if turn {
		return true, r.say("turn")
	}
	return false, r.say("fetch")
}

func (r *remote) Adopt(context.Context, *state.Tree) (bool, error) { return true, r.say("adopt") }

func (r *remote) Push(_ context.Context, done []string) (sent, again bool, err error) {
	if err := r.say("push"); err != nil || r.full {
		return false, false, cmp.Or(err, errAway)
	}
	time.Sleep(r.slow)
	if r.refuse != 0 {
		r.refuse--
		return false, true, nil
	}
	r.done = append(r.done, done...)
	return true, false, nil
}

func (r *remote) PushPending(context.Context) error          { return r.say("leave") }
func (r *remote) Unpushed(context.Context) ([]string, error) { return r.owed, nil }
func (r *remote) has(what string) int                        { return strings.Count(strings.Join(r.log, " "), what) }

func (r *remote) Holds() ([]budgets.Hold, int, bool) { return nil, 0, false }

// OtherClaims omits expired claims.
func (r *remote) OtherClaims() map[string]time.Time {
	now := time.Now()
	maps.DeleteFunc(r.others, func(_ string, until time.Time) bool { return !now.Before(until) })
	return maps.Clone(r.others)
}

func always1s() func(string, int) (time.Duration, string) {
	return always(time.Second, schemas.OutcomeSucceeded)
}

// sharedLoop is a loop over a tree with two nodes that shares it with r.
func sharedLoop(t *testing.T, r *remote) *Loop {
	t.Helper()
	l := newLoop(t, tree(t, "    - {name: a, run: [x]}\n    - {name: b, run: [x], needs: [a]}"), newActor(always1s()))
	l.Share = r
	l.Transient = func(err error) bool { return errors.Is(err, errAway) }
	l.Commit = func(context.Context, *state.Tree, Scope) (Committed, error) { return Committed{Hash: "abc"}, nil }
	return l
}

// TestPushedOnTopOfWhatWon is refused twice: each time what won is taken in, and decided on, before the next push.
func TestPushedOnTopOfWhatWon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &remote{refuse: 2}
		got, err := sharedLoop(t, r).Once(t.Context())
		if err != nil || !got.Pushed || !got.Sent || !got.Pulled {
			t.Fatalf("pushed %t, sent %t, took %t: %v", got.Pushed, got.Sent, got.Pulled, err)
		}
		if r.log[0] != "fetch" || r.has("push turn adopt push turn adopt push") != 1 {
			t.Errorf("said to the remote: %q", r.log)
		}
		slices.Sort(r.done)
		if done := strings.Join(r.done, " "); strings.Count(done, "dags/job/a-") != 1 || strings.Count(done, "dags/job/b-") != 1 {
			t.Errorf("results pushed: %q", r.done)
		}
	})
}

// TestPublishesAtOnceWhatIsOwed finds the result of a killed run: it is pushed while the first node runs, and the remote
// is asked for no more than that.
func TestPublishesAtOnceWhatIsOwed(t *testing.T) {
	for name, watching := range map[string]bool{"once": false, "watch": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := &remote{owed: []string{"dags/old/x-0123456789abcdef-1"}}
				l := sharedLoop(t, r)
				ran := -1 // when it was pushed first
				l.Commit = func(_ context.Context, tree *state.Tree, _ Scope) (Committed, error) {
					if ran < 0 {
						ran = tree.Entry(schemas.Ref{Kind: schemas.DAGKind.Name, Name: "job"}).RunCount()
					}
					return Committed{Hash: "abc"}, nil
				}
				ctx, stop := context.WithTimeout(t.Context(), time.Minute)
				defer stop()
				run := l.Once
				if watching {
					run = func(ctx context.Context) (Result, error) { return l.Watch(ctx, nil) }
				}
				if _, err := run(ctx); err != nil {
					t.Fatal(err)
				}
				if ran != 0 || strings.Join(r.log[:2], " ") != "fetch push" || r.done[0] != r.owed[0] || len(r.done) != 3 {
					t.Errorf("pushed after %d runs: %q; said to the remote: %q", ran, r.done, r.log)
				}
			})
		})
	}
}

// TestGivesUpPushing is always refused: after ten tries the run leaves what it has for others and is to be repeated.
func TestGivesUpPushing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, slow := range []time.Duration{0, time.Minute} { // to answer: results are pushed before the run is idle, too
			r := &remote{refuse: -1, slow: slow}
			got, err := sharedLoop(t, r).Once(t.Context())
			if !errors.Is(err, state.ErrBusy) || got.Pushed || !strings.Contains(err.Error(), " tries in ") {
				t.Errorf("pushed %t: %v", got.Pushed, err)
			}
			if n := r.has("push"); n > pushTries || slow == 0 && n < pushTries || r.has("leave") != 1 {
				t.Errorf("said to the remote: %q", r.log)
			}
		}
	})
}

// TestSharedRunsWhileTheRemoteIsAway has a remote that is away in the middle of a run. What runs goes on; a one-shot run
// ends with the error, a watcher pushes when the remote is back.
func TestSharedRunsWhileTheRemoteIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		away := func() bool { return time.Since(start) > 500*time.Millisecond && time.Since(start) < time.Minute }
		l := sharedLoop(t, &remote{away: away})
		committed := 0 // nodes with a record in the last commit
		l.Commit = func(_ context.Context, tree *state.Tree, _ Scope) (Committed, error) {
			committed = tree.Entry(schemas.DAGKind.Ref("job")).RunCount()
			return Committed{Hash: "abc"}, nil
		}
		got, err := l.Once(t.Context())
		if !errors.Is(err, errAway) || !strings.Contains(err.Error(), CommittedHere) || got.Pushed || got.Ran != 2 || committed != 2 {
			t.Errorf("%d ran, %d are committed, pushed %t: %v", got.Ran, committed, got.Pushed, err)
		}
		start = time.Now()
		r := &remote{away: away}
		ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute)
		defer stop()
		got, err = sharedLoop(t, r).Watch(ctx, nil)
		if err != nil || !got.Pushed || len(r.done) != 2 {
			t.Errorf("pushed %t, results %q: %v", got.Pushed, r.done, err)
		}
		if n := r.has("away"); n == 0 || n > 30 {
			t.Errorf("%d tries while it was away", n)
		}
	})
}

// TestWaitsForOthers lets another reconciler have a claim that runs out: until then its effect is not started here, and
// the run says what it waits for.
func TestWaitsForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &remote{others: map[string]time.Time{}}
		l := sharedLoop(t, r)
		first, err := l.Store.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		until := time.Now().Add(30 * time.Second)
		for _, e := range settle.Tree(first, time.Now(), nil).Outs[schemas.Ref{Kind: "DAG", Name: "job"}].Effects {
			r.others[e.Key] = until
		}
		var said []string
		l.Warn = func(text string) { said = append(said, fmt.Sprint(time.Until(until).Round(time.Second), " ", text)) }
		start := time.Now()
		got, err := l.Once(t.Context())
		if took := time.Since(start).Round(time.Second); err != nil || took != 32*time.Second || got.Ran != 2 {
			t.Errorf("%d ran in %s: %v", got.Ran, took, err)
		}
		if len(said) != 1 || !strings.HasPrefix(said[0], "20s waiting for a of dag/job, which another reconciler performs;") ||
			!strings.HasSuffix(said[0], "takes over in 20s") {
			t.Errorf("said %q", said)
		}
		if polls := r.has("fetch"); polls < 3 || polls > 12 {
			t.Errorf("asked the remote %d times in half a minute", polls)
		}
	})
}

// TestGivesUpOnARemoteThatTakesNothing waits for what another reconciler performs, and cannot push what came of its own
// node. That the remote can be read meanwhile does not keep a one-shot run for ever.
func TestGivesUpOnARemoteThatTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &remote{full: true, others: map[string]time.Time{}}
		l := newLoop(t, tree(t, "    - {name: a, run: [x]}\n    - {name: b, run: [x]}"), newActor(always1s()))
		l.Share = r
		l.Transient = func(err error) bool { return errors.Is(err, errAway) }
		l.Commit = func(context.Context, *state.Tree, Scope) (Committed, error) { return Committed{Hash: "abc"}, nil }
		first, err := l.Store.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		effects := settle.Tree(first, time.Now(), nil).Outs[schemas.Ref{Kind: "DAG", Name: "job"}].Effects
		r.others[effects[1].Key] = time.Now().Add(time.Hour)
		start := time.Now()
		got, err := l.Once(t.Context())
		if took := time.Since(start); !errors.Is(err, errAway) || got.Pushed || got.Ran != 1 || took > 2*unreachableLimit {
			t.Errorf("%d ran, pushed %t after %s: %v", got.Ran, got.Pushed, took, err)
		}
		if n := r.has("push"); n < 3 || n > 30 {
			t.Errorf("%d pushes", n)
		}
	})
}
