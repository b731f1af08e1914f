package controllers

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers/admission"
	"reconcile.dev/reconcile/controllers/budgets"
	"reconcile.dev/reconcile/controllers/dags"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// selectionSim has two DAGs. In the first b and c need a, and d, who asks the boss, needs b.
func selectionSim(t *testing.T) *sim {
	s := newSim(t)
	s.checks = false
	s.put("specs/sessions/s.yaml", head("Session", "s")+"spec: {title: s}\n")
	s.put("specs/dags/d.yaml", head("DAG", "d")+`spec:
  session: s
  policy: {failFast: false, timeout: 1h}
  nodes:
    - {name: a, run: [a]}
    - {name: b, run: [b], needs: [a]}
    - {name: c, run: [c], needs: [a]}
    - {name: d, run: [d], needs: [b]}
    - {name: e, run: [e]}
`)
	s.put("specs/dags/x.yaml", head("DAG", "x")+"spec:\n  session: s\n  nodes: [{name: a, run: [a]}]\n")
	s.settle()
	return s
}

func admitted(s *sim, only *settle.Selection) string {
	var names []string
	for _, e := range admission.Admit(s.tree(), pointers(s.effects()), only, "p", 8, 0, new(budgets.Ledger), new(admission.Turns), benchNow) {
		names = append(names, e.Owner.Name+"/"+e.Node)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// TestAdmitOnlySelected claims what was asked for with all that it needs, as it becomes possible, and nothing else.
func TestAdmitOnlySelected(t *testing.T) {
	for _, c := range []struct {
		only        *settle.Selection
		first, then string // when a has ended
	}{
		{nil, "d/a d/e x/a", "d/b d/c d/e x/a"},
		{&settle.Selection{DAG: "d"}, "d/a d/e", "d/b d/c d/e"},
		{&settle.Selection{DAG: "d", Nodes: []string{"d"}}, "d/a", "d/b"},
		{&settle.Selection{DAG: "d", Nodes: []string{"e", "c"}}, "d/a d/e", "d/c d/e"},
		{&settle.Selection{DAG: "d", Nodes: []string{"gone"}}, "", ""},
		{&settle.Selection{DAG: "gone"}, "", ""},
		{&settle.Selection{DAG: "x"}, "x/a", "x/a"},
	} {
		s := selectionSim(t)
		if got := admitted(s, c.only); got != c.first {
			t.Errorf("%v: at first %q, want %q", c.only, got, c.first)
		}
		s.perform("d", "a", schemas.OutcomeSucceeded)
		if got := admitted(s, c.only); got != c.then {
			t.Errorf("%v: then %q, want %q", c.only, got, c.then)
		}
	}
}

// perform runs a node that is wanted to its end.
func (s *sim) perform(dag, node, outcome string) {
	for _, e := range s.effects() {
		if e.Owner.Name == dag && e.Node == node {
			s.start(e)
			s.end(e.Owner, e.Key, func(r *schemas.Run) { r.Outcome = outcome })
		}
	}
	s.settle()
}

// TestAdmitSelectedKeepsLimits counts what others run that is not selected.
func TestAdmitSelectedKeepsLimits(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 4))
		p := newPool(t, 1+r.IntN(3), randomEffects(r))
		p.only = &settle.Selection{DAG: p.wanted[r.IntN(len(p.wanted))].Owner.Name}
		for range 30 {
			process := pick(r, "p1", "p2")
			if r.IntN(2) == 0 {
				p.admit(process, r.IntN(3))
			} else {
				p.start(process)
			}
			p.limits()
		}
		for process, list := range p.claimed {
			if slices.ContainsFunc(list, func(e settle.Effect) bool { return e.Owner.Name != p.only.DAG }) {
				t.Fatalf("seed %d: %s claimed what is not selected", seed, process)
			}
		}
		if p.only = nil; len(p.wanted) > 0 {
			p.admit("p3", 0)
			p.start("p3")
			p.limits()
		}
	}
}

// TestSelectionVerdict goes by what was asked for.
func TestSelectionVerdict(t *testing.T) {
	s := selectionSim(t)
	s.perform("d", "a", schemas.OutcomeSucceeded)
	s.perform("d", "b", schemas.OutcomeFailed)
	for _, c := range []struct {
		only *settle.Selection
		want readiness.Exit
	}{
		{&settle.Selection{DAG: "d", Nodes: []string{"a"}}, readiness.ExitReady},
		{&settle.Selection{DAG: "d", Nodes: []string{"c"}}, readiness.ExitReady},
		{&settle.Selection{DAG: "d", Nodes: []string{"b"}}, readiness.ExitStalled},
		{&settle.Selection{DAG: "d", Nodes: []string{"d"}}, readiness.ExitStalled}, // which needs b
		{&settle.Selection{DAG: "d"}, readiness.ExitStalled},
		{&settle.Selection{DAG: "x"}, readiness.ExitReady},
	} {
		if got := readiness.Verdict(s.tree(), c.only); got != c.want {
			t.Errorf("%v: %d, want %d", c.only, got, c.want)
		}
	}
}

// TestSelectionTakesQuestionsAlong selects the requests of its nodes, under whatever key, and no others.
func TestSelectionTakesQuestionsAlong(t *testing.T) {
	s := selectionSim(t)
	s.put("specs/agents/boss.yaml", head("Agent", "boss")+"spec: {runner: {human: {}}}\n")
	s.put("specs/agents/eng.yaml", head("Agent", "eng")+"spec: {runner: {human: {}}}\n")
	for name, run := range map[string]string{
		"ours": "dags/d/b-0123456789abcdef-1", "theirs": "dags/d/c-0123456789abcdef-1",
		"other": "dags/x/b-0123456789abcdef-1", "free": "",
	} {
		s.put("specs/clarificationrequests/"+name+".yaml", head("ClarificationRequest", name)+
			fmt.Sprintf("spec: {from: eng, to: boss, topic: t, question: q, run: %q}\n", run))
	}
	in := (&settle.Selection{DAG: "d", Nodes: []string{"d"}}).In(s.tree())
	for name, want := range map[string]bool{"ours": true, "theirs": false, "other": false, "free": false, "gone": false} {
		if got := in(schemas.ClarificationRequestKind.Ref(name), "round_1"); got != want {
			t.Errorf("%s: selected %v, want %v", name, got, want)
		}
	}
}

// TestClockStopsBetweenRuns does not count the time in which no process runs, and goes on where it was.
func TestClockStopsBetweenRuns(t *testing.T) {
	s := selectionSim(t)
	began, worked := s.now, map[schemas.Ref]bool{schemas.DAGKind.Ref("d"): true}
	stop := func() int {
		stopped := dags.StopClocks(s.tree(), s.now, []schemas.Ref{schemas.DAGKind.Ref("d"), schemas.DAGKind.Ref("x")}, began, worked)
		for _, e := range stopped {
			s.entries[e.Ref] = e
		}
		return len(stopped)
	}
	spent := func(wait time.Duration) time.Duration {
		s.now = s.now.Add(wait)
		s.entry(schemas.DAGKind.Ref("d"))
		s.settle()
		return spentIn(s.dag("d").Active, s.now)
	}
	e, _ := s.find("d", "a")
	s.start(e)
	s.settle()
	if stop() != 0 {
		t.Fatal("the clock was stopped while a node ran")
	}
	s.now = s.now.Add(10 * time.Minute)
	s.end(e.Owner, e.Key, func(r *schemas.Run) { r.Outcome = schemas.OutcomeSucceeded })
	if got := spent(5 * time.Minute); got != 15*time.Minute {
		t.Fatalf("%s were spent before, want 15m", got)
	}
	if n, again := stop(), stop(); n != 1 || again != 0 {
		t.Fatalf("%d clocks were stopped, then %d, want 1 and 0", n, again)
	}
	if got := spent(8 * time.Hour); got != 15*time.Minute {
		t.Fatalf("%s were spent after the night, want 15m", got)
	}
	if stop() != 0 && spentIn(s.dag("d").Active, s.now) != 15*time.Minute {
		t.Fatal("a look changed the time spent")
	}
	if got := spent(8 * time.Hour); got != 15*time.Minute {
		t.Fatalf("%s were spent after a look and another night, want 15m", got)
	}
	// A run about something else takes three hours.
	stop()
	began = s.now
	clear(worked)
	spent(0)
	s.now = s.now.Add(3 * time.Hour)
	if n, got := stop(), spentIn(s.dag("d").Active, s.now); n != 1 || got != 15*time.Minute {
		t.Fatalf("%d clocks were stopped, and %s were spent after a run of others, want 15m", n, got)
	}
	if got := spent(8 * time.Hour); got != 15*time.Minute {
		t.Fatalf("%s were spent after that run, want 15m", got)
	}
	if got := spent(44 * time.Minute); got != 59*time.Minute || len(s.effects()) < 3 {
		t.Fatalf("%s were spent, and %d effects are wanted", got, len(s.effects()))
	}
	if spent(time.Minute); s.dag("d").Phase != schemas.DAGFailed {
		t.Errorf("the limit of an hour is over, and the DAG is %s", s.dag("d").Phase)
	}
}
