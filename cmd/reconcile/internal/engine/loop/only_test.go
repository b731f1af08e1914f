package loop

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

func only(l *Loop, nodes ...string) *Loop {
	l.Only = &settle.Selection{DAG: "job", Nodes: nodes}
	return l
}

// TestOnlyWaitsForItsOwn has one loop perform a node for an hour, and another one that backs off; a second loop, with other
// nodes, waits for neither.
func TestOnlyWaitsForItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := tree(t, `    - {name: slow, run: [x]}
    - {name: flaky, run: [x], retry: {limit: 1, backoff: 30m, max: 1h}}
    - {name: a, run: [x]}
    - {name: b, run: [x], needs: [a]}
    - {name: c, run: [x], needs: [b]}
  policy: {failFast: false}`)
		first := newActor(func(node string, n int) (time.Duration, string) {
			if node == "flaky" && n == 1 {
				return time.Second, schemas.OutcomeFailed
			}
			return time.Minute, schemas.OutcomeSucceeded
		})
		second := newActor(always(time.Second, schemas.OutcomeSucceeded))
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := only(newLoop(t, dir, first), "slow", "flaky").Once(t.Context()); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(2 * time.Second)
		begin := time.Now()
		r, err := only(newLoop(t, dir, second), "b").Once(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if took := time.Since(begin); took > 10*time.Second || job(t, r.Tree).Nodes.Of("slow").State != schemas.NodeRunning {
			t.Errorf("took %s, slow is %s", took, job(t, r.Tree).Nodes.Of("slow").State)
		}
		wg.Wait()
		if got := second.done(); !slices.Equal(got, []string{"a Succeeded", "b Succeeded"}) {
			t.Errorf("the second ran %q", got)
		}
		if got := first.done(); !slices.Equal(got, []string{"flaky Failed", "slow Succeeded", "flaky Succeeded"}) {
			t.Errorf("the first ran %q", got)
		}
	})
}

// TestOnlyWaitsForPlaces has another loop hold the only place.
func TestOnlyWaitsForPlaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := tree(t, "    - {name: slow, run: [x]}\n    - {name: a, run: [x]}")
		put(t, dir, "reconcile.yaml", "apiVersion: reconcile.dev/v1alpha1\nkind: Settings\nspec: {limits: {concurrentTasks: 1}}\n")
		first := only(newLoop(t, dir, newActor(always(5*time.Second, schemas.OutcomeSucceeded))), "slow")
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := first.Once(t.Context()); err != nil {
				t.Error(err)
			}
		})
		time.Sleep(2 * time.Second)
		r, err := only(newLoop(t, dir, newActor(always1s())), "a").Once(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := job(t, r.Tree).Nodes.Of("a"); got.State != schemas.NodeSucceeded || r.Ran != 1 {
			t.Errorf("a is %s after %d runs", got.State, r.Ran)
		}
		wg.Wait()
	})
}

// TestOnlyLeavesClaimsOfOthers shares a branch on which another reconciler has claimed what was not asked for.
func TestOnlyLeavesClaimsOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &remote{others: map[string]time.Time{}}
		l := only(newLoop(t, tree(t, "    - {name: a, run: [x]}\n    - {name: b, run: [x]}"), newActor(always1s())), "a")
		l.Share = r
		var open []schemas.Ref
		l.Commit = func(_ context.Context, _ *state.Tree, scope Scope) (Committed, error) {
			open = scope.Open
			return Committed{Hash: "abc"}, nil
		}
		first, err := l.Store.Load(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ref := schemas.Ref{Kind: "DAG", Name: "job"}
		for _, e := range settle.Tree(first, time.Now(), nil).Outs[ref].Effects {
			if e.Node == "b" {
				r.others[e.Key] = time.Now().Add(time.Hour)
			}
		}
		begin := time.Now()
		got, err := l.Once(t.Context())
		if err != nil || got.Ran != 1 || !got.Pushed || time.Since(begin) > time.Minute {
			t.Errorf("%d ran, pushed %t after %s: %v", got.Ran, got.Pushed, time.Since(begin), err)
		}
		if !slices.Equal(open, []schemas.Ref{ref}) {
			t.Errorf("%v is left for a later commit, want %v", open, ref)
		}
	})
}

// TestLimitStandsStillBetweenRuns interrupts a run, and goes on after more time than the DAG has.
func TestLimitStandsStillBetweenRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := tree(t, "    - {name: slow, run: [x]}\n  policy: {timeout: 6m}")
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if _, err := newLoop(t, dir, newActor(always(270*time.Second, schemas.OutcomeSucceeded))).Once(ctx); err != nil {
			t.Fatal(err)
		}
		time.Sleep(8 * time.Hour)
		look := newLoop(t, dir, newActor(nil))
		if _, err := look.DecideOnce(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(8 * time.Hour)
		r, err := newLoop(t, dir, newActor(always(270*time.Second, schemas.OutcomeSucceeded))).Once(t.Context())
		if err != nil || job(t, r.Tree).Phase != schemas.DAGSucceeded {
			t.Errorf("the DAG is %s: %v", job(t, r.Tree).Phase, err)
		}
	})
}

// TestOnlyStopsOtherClocks has a loop work for longer than another DAG has, which has begun and could go on.
func TestOnlyStopsOtherClocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := tree(t, "    - {name: a, run: [x]}")
		put(t, dir, "specs/dags/other.yaml", `apiVersion: reconcile.dev/v1alpha1
kind: DAG
metadata: {name: other}
spec:
  session: work
  policy: {timeout: 5m}
  nodes:
    - {name: b, run: [x]}
    - {name: c, run: [x], needs: [b]}
`)
		other := &settle.Selection{DAG: "other", Nodes: []string{"b"}}
		l := newLoop(t, dir, newActor(always1s()))
		l.Only = other
		if _, err := l.Once(t.Context()); err != nil {
			t.Fatal(err)
		}
		long := only(newLoop(t, dir, newActor(always(15*time.Minute, schemas.OutcomeSucceeded))))
		r, err := long.Once(t.Context())
		if err != nil || r.Ran != 1 || job(t, r.Tree).Nodes.Of("a").State != schemas.NodeSucceeded {
			t.Fatalf("%d ran, and a is %s: %v", r.Ran, job(t, r.Tree).Nodes.Of("a").State, err)
		}
		st := r.Tree.Entry(schemas.Ref{Kind: "DAG", Name: "other"}).Status().(*schemas.DAGStatus)
		if got := st.Nodes.Of("c").State; got != schemas.NodeQueued {
			t.Errorf("c of the other DAG is %s: %s", got, st.Nodes.Of("c").Message)
		}
	})
}
