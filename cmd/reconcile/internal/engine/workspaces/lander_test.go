package workspaces

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// actor is a performer that starts what it gets when it is told to.
type actor struct {
	notify    chan struct{}
	submitted chan settle.Effect
	reports   chan settle.Report
	reaped    []string
}

func (a *actor) Submit(e settle.Effect)                              { a.submitted <- e }
func (a *actor) SetLimits(*schemas.RunSettings, int, map[string]int) {}
func (a *actor) Withdraw(string, string)                             {}
func (a *actor) Cancel(string, string)                               {}
func (a *actor) Hurry(string)                                        {}
func (a *actor) Tell(string, []settle.Message)                       {}
func (a *actor) Notify() <-chan struct{}                             { return a.notify }
func (a *actor) Backlog() int                                        { return 0 }
func (a *actor) Close(context.Context) error                         { return nil }
func (a *actor) Drain() (out []settle.Report) {
	for {
		select {
		case r := <-a.reports:
			out = append(out, r)
		default:
			return out
		}
	}
}

func (a *actor) ReapAll(_ context.Context, orphans []state.Orphan) error {
	for _, o := range orphans {
		a.reaped = append(a.reaped, o.Key)
	}
	return nil
}

func (a *actor) report(r settle.Report) {
	a.reports <- r
	a.notify <- struct{}{}
}

func newLanding(t *testing.T) (*fixture, *actor, *Lander) {
	f := newFixture(t)
	a := &actor{notify: make(chan struct{}, 10), submitted: make(chan settle.Effect, 10), reports: make(chan settle.Report, 10)}
	l := NewLander(a, f.m)
	t.Cleanup(func() { l.Close(context.Background()) }) //nolint:errcheck // the actor has nothing to end
	return f, a, l
}

// untilEnd returns the reports of a Lander up to the end of an effect.
func untilEnd(l *Lander) (out []settle.Report) {
	for len(out) == 0 || !out[len(out)-1].Kind.Ends() {
		<-l.Notify()
		out = append(out, l.Drain()...)
	}
	return out
}

// TestStartsAreReported: others see that a verification and a landing run, and since when.
func TestStartsAreReported(t *testing.T) {
	f, a, l := newLanding(t)
	l.Submit(settle.Effect{Key: "dags/d/a-1-1", Owner: schemas.DAGKind.Ref("d"), Node: "a", Task: &settle.Verify{Step: schemas.StepTest, Commit: "c"}})
	check := <-a.submitted
	a.report(settle.Report{Kind: settle.Started, Key: check.Key, At: f.now, PID: 7})
	a.report(settle.Report{Kind: settle.Released, Key: check.Key, At: f.now, Why: "enough"})
	if got := untilEnd(l); len(got) != 2 || got[0].Kind != settle.Started || got[0].Key != "dags/d/a-1-1" || !got[0].At.Equal(f.now) || got[0].PID != 7 || got[0].Step != schemas.StepTest || got[1].Key != got[0].Key {
		t.Errorf("the verification: %+v", got)
	}
	l.Submit(settle.Effect{Key: "dags/d/a-2-1", Owner: schemas.DAGKind.Ref("d"), Node: "a", Task: f.work("a", map[string]string{"new": "new\n"})})
	if got := untilEnd(l); len(got) != 2 || got[0].Kind != settle.Started || got[0].Key != "dags/d/a-2-1" || got[0].Step != schemas.StepLand || got[1].Kind != settle.Finished || !got[1].Run.StartedAt.Equal(got[0].At) {
		t.Errorf("the landing: %+v", got)
	}
}

// TestReapsChecks: what a killed landing or verification left is found by the keys of their checks.
func TestReapsChecks(t *testing.T) {
	_, a, l := newLanding(t)
	orphan := func(r schemas.Run) state.Orphan { return state.Orphan{Claim: state.Claim{Run: r}} }
	err := l.ReapAll(t.Context(), []state.Orphan{orphan(schemas.Run{Key: "work"}), orphan(schemas.Run{Key: "landing", Lands: "work"}),
		orphan(schemas.Run{Key: "test", Verifies: "work", Step: schemas.StepTest})})
	want := []string{"work", "landing", "test", checkEffect(settle.Effect{Key: "landing"}, "", settle.Command{}, nil).Key, checkEffect(settle.Effect{Key: "test"}, "", settle.Command{}, nil).Key}
	if err != nil || !slices.Equal(a.reaped, want) {
		t.Errorf("reaped %q, want %q: %v", a.reaped, want, err)
	}
}

// TestTip: where nobody can say what there is to verify, the verification says why, and nothing else is verified.
func TestTip(t *testing.T) {
	f := newFixture(t)
	f.git("branch", "release")
	f.write("file", "two\n")
	f.git("commit", "-qam", "next")
	tip := func(task settle.Verify) (string, string) {
		t.Helper()
		commit, why, err := f.m.tipOf(t.Context(), &task)
		if err != nil {
			t.Fatal(err)
		}
		return commit, why
	}
	if commit, why := tip(settle.Verify{Branch: "release"}); commit != f.git("rev-parse", "release") || why != "" {
		t.Errorf("%s, %q", commit, why)
	}
	if commit, why := tip(settle.Verify{Branch: "gone"}); commit != "" || !strings.Contains(why, "the branch gone is not in this clone") {
		t.Errorf("%s, %q", commit, why)
	}
	f.write("file", "three\n")
	if _, why := tip(settle.Verify{Clean: true}); !strings.Contains(why, "lacks changes of it: file; commit them") {
		t.Errorf("%q", why)
	}
	f.write(".git/index", "torn")
	if _, why := tip(settle.Verify{Clean: true}); !strings.Contains(why, "nobody knows what is not committed") {
		t.Errorf("%q", why)
	}
	if err := os.RemoveAll(filepath.Join(f.tree, ".git")); err != nil {
		t.Fatal(err)
	}
	if commit, why := tip(settle.Verify{}); commit != "" || !strings.Contains(why, "there is nothing to check out") {
		t.Errorf("%s, %q", commit, why)
	}
}
