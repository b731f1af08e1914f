package progress_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers/progress"
	"reconcile.dev/reconcile/controllers/progress/progresstest"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

var start = time.Date(2026, 2, 27, 12, 0, 0, 0, time.UTC)

func run(name string, needs ...string) schemas.Node {
	return schemas.Node{Name: name, Run: []string{"x"}, Needs: needs}
}

func specs(nodes ...schemas.Node) map[string]*schemas.DAGSpec {
	s := &schemas.DAGSpec{Nodes: nodes}
	s.Default()
	return map[string]*schemas.DAGSpec{"job": s}
}

func counts(v progress.View) string {
	return fmt.Sprintf("%d/%d running %d queued %d waiting %d failed %d", v.Done, v.Total, v.Running, v.Queued, v.Waiting, v.Failed)
}

func want(t *testing.T, step string, v progress.View, counted string, nodes ...string) {
	t.Helper()
	var names []string
	for _, n := range v.Nodes {
		names = append(names, n.Name)
	}
	if got := counts(v); got != counted || !slices.Equal(names, nodes) {
		t.Errorf("%s: %s %q, want %s %q", step, got, names, counted, nodes)
	}
}

// A node counts as done when it is reported, not when a status says so.
func TestCountsAsReported(t *testing.T) {
	p := progresstest.New(t, start, specs(run("a"), run("b"), run("c", "a", "b")))
	tr := progress.Tracker{CPUs: 2}
	view := func() progress.View { return tr.View(p.Now, 10) }
	tr.Tree(p.Tree)
	want(t, "first", view(), "0/3 running 0 queued 2 waiting 0 failed 0")
	tr.Report(p.Start("job", "a"))
	tr.Report(p.Start("job", "b"))
	want(t, "started", view(), "0/3 running 2 queued 0 waiting 0 failed 0", "a", "b")
	tr.Tree(p.Turn())
	want(t, "and decided", view(), "0/3 running 2 queued 0 waiting 0 failed 0", "a", "b")
	p.Pass(time.Second)
	if got := tr.Report(p.Finish("job", "a", schemas.OutcomeSucceeded, "")); len(got) != 1 || got[0].Took != time.Second {
		t.Errorf("the end of a node is told as %+v", got)
	}
	want(t, "ended", view(), "1/3 running 1 queued 0 waiting 0 failed 0", "b")
	tr.Tree(p.Turn())
	tr.Report(p.Finish("job", "b", schemas.OutcomeSucceeded, ""))
	tr.Tree(p.Turn())
	want(t, "the next is due", view(), "2/3 running 0 queued 1 waiting 0 failed 0")
	tr.Report(p.Start("job", "c"))
	tr.Report(p.Finish("job", "c", schemas.OutcomeSucceeded, ""))
	v := view()
	if want(t, "all", v, "3/3 running 0 queued 0 waiting 0 failed 0"); !v.Idle() {
		t.Error("nothing runs, and yet it is not idle")
	}
	tr.Tree(p.Turn())
	tr.Reset()
	want(t, "told", view(), "0/0 running 0 queued 0 waiting 0 failed 0")
}

// A failure that is followed by another attempt is not the node's failure, and is not told before that is known.
func TestRetriesAreNoFailures(t *testing.T) {
	node := run("flaky")
	node.Retry = &schemas.Retry{Limit: 1, Backoff: new(schemas.Duration)}
	*node.Retry.Backoff = schemas.Duration(10 * time.Second)
	p := progresstest.New(t, start, specs(node))
	tr := progress.Tracker{CPUs: 2}
	fail := func() progress.Event {
		t.Helper()
		tr.Report(p.Start("job", "flaky"))
		tr.Tree(p.Turn())
		p.Pass(time.Second)
		if got := tr.Report(p.Finish("job", "flaky", schemas.OutcomeFailed, "so bad\n")); len(got) != 0 {
			t.Errorf("told too soon: %+v", got)
		}
		got := tr.Tree(p.Turn())
		if len(got) != 1 {
			t.Fatalf("told %+v", got)
		}
		return got[0]
	}
	tr.Tree(p.Tree)
	if e := fail(); !e.Again || e.Final || e.Attempt != 1 || e.Attempts != 2 || e.Due.Sub(p.Now) != 10*time.Second {
		t.Errorf("the first failure: %+v", e)
	}
	v := tr.View(p.Now, 10)
	want(t, "back-off", v, "0/1 running 0 queued 1 waiting 0 failed 0", "flaky")
	if n := v.Nodes[0]; n.Attempt != 2 || n.Attempts != 2 || v.Idle() {
		t.Errorf("attempt %d of %d, idle %t", n.Attempt, n.Attempts, v.Idle())
	}
	p.Pass(10 * time.Second)
	tr.Tree(p.Turn())
	if e := fail(); e.Again || !e.Final || e.Attempt != 2 || e.Output != "so bad\n" || !strings.HasSuffix(e.Log, "-2.log") {
		t.Errorf("the last failure: %+v", e)
	}
	want(t, "failed", tr.View(p.Now, 10), "0/1 running 0 queued 0 waiting 0 failed 1")
}

func TestWaitingNodes(t *testing.T) {
	ask := schemas.Node{Name: "ask", Agent: "ada", Prompt: "look"}
	p := progresstest.New(t, start, specs(run("a"), ask, run("b", "ask")))
	tr := progress.Tracker{CPUs: 1}
	tr.Tree(p.Tree)
	v := tr.View(p.Now, 10)
	want(t, "waits", v, "0/3 running 0 queued 1 waiting 1 failed 0", "ask")
	if got := v.Nodes[0].Message; !strings.HasPrefix(got, "waits for ada") {
		t.Errorf("waits: %q", got)
	}
	tr.Report(p.Start("job", "a"))
	tr.Report(p.Finish("job", "a", schemas.OutcomeSucceeded, ""))
	tr.Tree(p.Turn())
	if v := tr.View(p.Now, 10); !v.Idle() || v.Left != 0 {
		t.Errorf("only a person can go on: %s, %s left", counts(v), v.Left)
	}
}

// The time left is the longest chain, or all work divided by the places, by what nodes took before.
func TestTimeLeft(t *testing.T) {
	p := progresstest.New(t, start, specs(run("a"), run("b", "a"), run("c")))
	took := map[string]time.Duration{"a": 60 * time.Second, "b": 30 * time.Second, "c": 50 * time.Second}
	for _, name := range []string{"a", "b", "c"} {
		from := p.Now
		p.Start("job", name)
		p.Pass(took[name])
		p.Finish("job", name, schemas.OutcomeSucceeded, "")
		p.Turn()
		p.Now = from
	}
	// The same DAG with other commands: nothing of it is done, and its records stand.
	again := specs(run("a"), run("b", "a"), run("c"))
	for i := range again["job"].Nodes {
		again["job"].Nodes[i].Run = []string{"y"}
	}
	next := progresstest.New(t, start, again)
	e := *next.Tree.Entry(schemas.Ref{Kind: "DAG", Name: "job"})
	e.SetRuns(p.Tree.Entry(e.Ref).Runs())
	next.Tree = next.Tree.With(&e)
	for places, want := range map[int]time.Duration{1: 140 * time.Second, 2: 90 * time.Second} {
		tr := progress.Tracker{CPUs: places}
		tr.Tree(next.Turn())
		if v := tr.View(next.Now, 10); v.Left != want || v.Least {
			t.Errorf("%d places: %s left, want %s; at least %t", places, v.Left, want, v.Least)
		}
	}
	tr := progress.Tracker{CPUs: 2}
	tr.Tree(next.Tree)
	tr.Report(next.Start("job", "a"))
	tr.Tree(next.Turn())
	next.Pass(20 * time.Second)
	if v := tr.View(next.Now, 10); v.Left != 70*time.Second || v.Nodes[0].Usual != 60*time.Second {
		t.Errorf("20 s later: %s left; %+v", v.Left, v.Nodes)
	}
}

// What has no record counts as long as what succeeded in this run; without such the rest is of unknown length.
func TestTimeLeftWithoutRecords(t *testing.T) {
	p := progresstest.New(t, start, specs(run("a"), run("b"), run("c")))
	tr := progress.Tracker{CPUs: 1}
	tr.Tree(p.Tree)
	if v := tr.View(p.Now, 10); v.Left != 0 || !v.Least {
		t.Errorf("at first: %s left, at least %t", v.Left, v.Least)
	}
	tr.Report(p.Start("job", "a"))
	p.Pass(8 * time.Second)
	tr.Report(p.Finish("job", "a", schemas.OutcomeSucceeded, ""))
	tr.Tree(p.Turn())
	if v := tr.View(p.Now, 10); v.Left != 16*time.Second || v.Least {
		t.Errorf("then: %s left, at least %t", v.Left, v.Least)
	}
}

// What starts and ends outside of DAGs is known by its reports alone; what makes no sense is left out.
func TestOtherOwners(t *testing.T) {
	tr := progress.Tracker{CPUs: 1}
	key := "requests/db-layer/round_1-0123456789abcdef-1"
	got := tr.Report(settle.Report{Kind: settle.Started, Key: key, At: start})
	if len(got) != 1 || got[0].Name != "round_1" || got[0].Since != start {
		t.Errorf("started: %+v", got)
	}
	want(t, "runs", tr.View(start, 10), "0/1 running 1 queued 0 waiting 0 failed 0", "round_1")
	tr.Report(settle.Report{Kind: settle.Released, Key: key, At: start})
	verify := "dags/checks/build-0123456789abcdef-1"
	tr.Report(settle.Report{Kind: settle.Started, Key: verify, At: start, Step: schemas.StepTest})
	if got := tr.Report(settle.Report{Kind: settle.Released, Key: verify, At: start, Why: "interrupted"}); len(got) != 1 || got[0].Step != schemas.StepTest || got[0].Message != "interrupted" {
		t.Errorf("a step that is interrupted: %+v", got)
	}
	if got := tr.Report(settle.Report{}); got != nil {
		t.Errorf("an empty report: %+v", got)
	}
}

// A verification is shown by its step and its verdict, and no verdict hides that it failed as a program.
func TestVerdicts(t *testing.T) {
	tr := progress.Tracker{CPUs: 1}
	key := "dags/job/a-0123456789abcdef-1"
	end := func(outcome, result string) progress.Event {
		tr.Report(settle.Report{Kind: settle.Started, Key: key, At: start, Step: schemas.StepTest})
		run := &schemas.Run{Key: key, Verifies: "work", Step: schemas.StepTest, Outcome: outcome, Message: "ended", Result: json.RawMessage(result)}
		events := append(tr.Report(settle.Report{Kind: settle.Finished, Key: key, At: start, Run: run}), tr.Flush()...)
		if len(events) != 1 {
			t.Fatalf("%s %s: %+v", outcome, result, events)
		}
		return events[0]
	}
	for _, c := range []struct{ outcome, result, verdict, message string }{
		{schemas.OutcomeSucceeded, `{"outcome": "passed", "summary": "3 tests passed"}`, "Passed", "3 tests passed"},
		{schemas.OutcomeSucceeded, `{"outcome": "failed", "summary": "1 finding"}`, "Failed", "1 finding"},
		{schemas.OutcomeSucceeded, `{"outcome": "unknown", "summary": "no tool"}`, "Unknown", "no tool"},
		{schemas.OutcomeSucceeded, `true`, "Unknown", "it came to no verdict: ended"},
		{schemas.OutcomeFailed, ``, "", "ended"},
	} {
		if e := end(c.outcome, c.result); e.Step != schemas.StepTest || e.Verdict != c.verdict || e.Message != c.message || e.State != c.outcome {
			t.Errorf("%+v: %+v", c, e)
		}
	}
}

// BenchmarkView looks at a tree in which one more node of many has ended, as often as the view is drawn.
func BenchmarkView(b *testing.B) {
	for _, c := range []struct{ dags, nodes int }{{10000, 3}, {1, 4000}} {
		b.Run(fmt.Sprintf("%dx%d", c.dags, c.nodes), func(b *testing.B) {
			specs := map[string]*schemas.DAGSpec{}
			for i := range c.dags {
				s := &schemas.DAGSpec{}
				for j := range c.nodes {
					s.Nodes = append(s.Nodes, run(fmt.Sprint("n", j)))
				}
				s.Default()
				specs[fmt.Sprint("job", i)] = s
			}
			p := progresstest.New(b, start, specs)
			tr := progress.Tracker{CPUs: 8}
			tr.Tree(p.Tree)
			tr.View(start, 20)
			tr.Report(p.Start("job0", "n0"))
			running := p.Turn()
			for i := 0; b.Loop(); i++ {
				b.StopTimer()
				e := *running.Entry(schemas.Ref{Kind: "DAG", Name: "job0"})
				st := *e.Status().(*schemas.DAGStatus)
				e.SetStatus(&st)
				tr.Tree(running.With(&e))
				b.StartTimer()
				tr.View(start.Add(time.Duration(i)*time.Second), 20)
			}
		})
	}
}

// A node that waits for another one which touches the same files is shown, with that one.
func TestHeldNodes(t *testing.T) {
	a, b := run("a"), run("b")
	a.Touches, b.Touches = []string{"docs/**"}, []string{"docs/a.md"}
	p := progresstest.New(t, start, specs(a, b, run("c")))
	tr := progress.Tracker{CPUs: 1}
	tr.Tree(p.Tree)
	want(t, "nothing runs", tr.View(p.Now, 10), "0/3 running 0 queued 3 waiting 0 failed 0")
	tr.Report(p.Start("job", "a"))
	tr.Tree(p.Turn())
	v := tr.View(p.Now, 10)
	want(t, "held", v, "0/3 running 1 queued 2 waiting 0 failed 0", "a", "b")
	if got, held := v.Nodes[1].Held, "waits for docs/a.md: dag/job/a touches docs and runs"; got != held {
		t.Errorf("held: %q, want %q", got, held)
	}
	tr.Report(p.Finish("job", "a", schemas.OutcomeSucceeded, ""))
	tr.Tree(p.Turn())
	want(t, "free", tr.View(p.Now, 10), "1/3 running 0 queued 2 waiting 0 failed 0")
}
