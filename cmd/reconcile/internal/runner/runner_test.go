package runner

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
)

// rig is a runner on a tree of its own.
type rig struct {
	*Runner
	t       testing.TB
	dir     string
	started map[string]int
}

func newRig(t testing.TB, o Options) *rig {
	t.Helper()
	if o.Root == "" {
		o.Root = t.TempDir()
	}
	r, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	g := &rig{Runner: r, t: t, dir: r.dir, started: map[string]int{}}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if err := r.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return g
}

// next waits for the end of one effect.
func (g *rig) await(key string) controllers.Report {
	g.t.Helper()
	timeout := time.After(30 * time.Second)
	for {
		for _, rep := range g.Drain() {
			if rep.Kind == controllers.Started {
				g.started[rep.Key] = rep.PID
			} else if rep.Key == key {
				return rep
			}
		}
		select {
		case <-g.Notify():
		case <-timeout:
			g.t.Fatalf("%s does not end", key)
		}
	}
}

func effect(key string, argv ...string) controllers.Effect {
	return controllers.Effect{
		Key: key, Owner: schemas.Ref{Kind: "DAG", Name: "checks"}, Node: "n", NodeKey: "sha256:1", Seq: 1,
		Task: controllers.Task{Argv: argv},
	}
}

func sh(key, script string) controllers.Effect { return effect(key, "sh", "-c", script) }

// run performs one effect and returns its record.
func (g *rig) do(e controllers.Effect) *schemas.Run {
	g.t.Helper()
	g.Submit(e)
	rep := g.await(e.Key)
	if rep.Kind != controllers.Finished {
		g.t.Fatalf("%s: not finished but %v: %s", e.Key, rep.Kind, rep.Why)
	}
	return rep.Run
}

func TestOutcomes(t *testing.T) {
	for _, c := range []struct {
		name, script, outcome, output string
		code                          int
	}{
		{"success", "echo hello", schemas.OutcomeSucceeded, "hello\n", 0},
		{"silence", ":", schemas.OutcomeSucceeded, "", 0},
		{"failure", "echo bad >&2; exit 3", schemas.OutcomeFailed, "bad\n", 3},
		{"signal", "kill -SEGV $$", schemas.OutcomeFailed, "", 139},
		{"both streams in order", "echo a; echo b >&2; echo c", schemas.OutcomeSucceeded, "a\nb\nc\n", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := newRig(t, Options{})
			run := g.do(sh("dags/checks/n-1-1", c.script))
			if run.Outcome != c.outcome || run.Output != c.output || run.ExitCode == nil || *run.ExitCode != c.code {
				t.Errorf("got %+v", run)
			}
			if left, err := os.ReadDir(g.dir + "/.reconcile/leases"); err == nil || len(left) > 0 {
				t.Errorf("leases are left: %v %v", left, err)
			}
		})
	}
}

func BenchmarkTrue(b *testing.B) {
	g := newRig(b, Options{Slots: 2})
	for i := range b.N {
		g.Submit(effect("dags/checks/n-"+strconv.Itoa(i)+"-1", "true"))
	}
	for n := 0; n < b.N; {
		<-g.Notify()
		for _, rep := range g.Drain() {
			if rep.Kind == controllers.Finished {
				n++
			}
		}
	}
}
