package controllers

import (
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers/admission"
	"reconcile.dev/reconcile/controllers/budgets"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// healthSim has two DAGs of the agent ben, in whose place cid works.
func healthSim(t *testing.T, fallback string) *sim {
	s := newSim(t)
	s.put("specs/sessions/s.yaml", head("Session", "s")+"spec: {title: s}\n")
	s.put("specs/agents/ben.yaml", head("Agent", "ben")+"spec: {concurrency: 9, "+fallback+"runner: {command: {argv: [ben]}}}\n")
	s.put("specs/agents/cid.yaml", head("Agent", "cid")+"spec: {runner: {command: {argv: [cid]}}}\n")
	for _, dag := range []string{"d", "e"} {
		s.put("specs/dags/"+dag+".yaml", head("DAG", dag)+"spec:\n  session: s\n  policy: {failFast: false}\n  nodes: "+
			"[{name: n, agent: ben, prompt: Go., retry: {limit: 50, backoff: 1ms}}]\n")
	}
	return s
}

// ail makes agents unhealthy.
func (s *sim) ail(agents ...string) {
	s.checks = false // compares with decisions that know nothing of it
	s.decider.Ailing = func(agent string) (string, bool) {
		for _, a := range agents {
			if a == agent {
				return "it is not logged in", true
			}
		}
		return "", true
	}
	s.dirty[schemas.DAGKind.Ref("d")] = true
}

func TestHealthOfAgents(t *testing.T) {
	s := healthSim(t, "fallback: [nobody, cid], ")
	s.settle()
	e, ok := s.find("d", "n")
	if !ok || e.Agent != "ben" || e.Instead != nil {
		t.Fatalf("a healthy agent does not work: %+v", e)
	}
	s.ail("ben")
	s.settle()
	other, ok := s.find("d", "n")
	switch {
	case !ok || other.Agent != "cid" || other.Command().Argv[0] != "cid":
		t.Fatalf("the fallback does not work: %+v", other)
	case other.Key != e.Key:
		t.Errorf("the key of the work changed from %s to %s", e.Key, other.Key)
	case other.Instead == nil || other.Instead.Of != "ben" || !strings.Contains(other.Instead.Why, "not logged in"):
		t.Errorf("the record will not say why: %+v", other.Instead)
	case other.Claim().Instead == nil:
		t.Error("the claim does not say for whom")
	}
	s.ail("ben", "cid")
	s.settle()
	n := s.dag("d").Nodes.Of("n")
	if _, ok := s.find("d", "n"); ok || n.State != schemas.NodeBlocked || n.Reason != settle.ReasonAgentUnhealthy ||
		!strings.Contains(n.Message, "agent/ben") || !strings.Contains(n.Message, "cid") {
		t.Errorf("nobody can work, and the node is %s: %s: %s", n.State, n.Reason, n.Message)
	}
	s.ail()
	s.settle()
	if e, ok := s.find("d", "n"); !ok || e.Agent != "ben" {
		t.Error("the node does not go on when its agent is healthy again")
	}
}

// TestHealthOfReviews: an agent that works in place of another one does not review what it made.
func TestHealthOfReviews(t *testing.T) {
	s := newSim(t)
	s.put("specs/sessions/s.yaml", head("Session", "s")+"spec: {title: s, pipeline: {inspector: cid}}\n")
	s.put("specs/agents/ben.yaml", head("Agent", "ben")+"spec: {role: engineer, fallback: [cid], runner: {acp: {argv: [ben]}}}\n")
	s.put("specs/agents/cid.yaml", head("Agent", "cid")+"spec: {role: inspector, runner: {acp: {argv: [cid]}}}\n")
	s.put("specs/dags/d.yaml", head("DAG", "d")+"spec: {session: s, nodes: [{name: n, agent: ben, prompt: Go.}]}\n")
	s.ail("ben")
	s.settle()
	for _, change := range []func(*schemas.Run){
		func(r *schemas.Run) {
			r.Workspace = &schemas.RunWorkspace{Kind: schemas.WorkspaceClone, Name: "w", Base: "b", Commit: "c1", Tree: "t1"}
		},
		func(r *schemas.Run) {
			r.Result = []byte(`{"outcome":"passed","summary":"clean","tools":[{"tool":"flake8","category":"linter","outcome":"passed"}]}`)
		},
	} {
		e, ok := s.find("d", "n")
		if !ok {
			t.Fatalf("nothing is wanted: %+v", s.dag("d").Nodes.Of("n"))
		}
		s.start(e)
		s.end(e.Owner, e.Key, func(r *schemas.Run) {
			r.Outcome, r.FinishedAt = schemas.OutcomeSucceeded, schemas.NewTime(s.now)
			change(r)
		})
		s.settle()
	}
	n := s.dag("d").Nodes.Of("n")
	if e, ok := s.find("d", "n"); ok || n.Reason != settle.ReasonNotVerifiable || !strings.Contains(n.Message, "would judge its own change") {
		t.Errorf("the change of cid is %s %s: %s, wanted is %+v", n.State, n.Reason, n.Message, e)
	}
}

// fail lets the node of a DAG fail for a reason that is not the work.
func (s *sim) fail(dag string) {
	s.now = s.now.Add(time.Second)
	s.dirty[schemas.DAGKind.Ref(dag)] = true // as its clock says
	s.settle()
	e, ok := s.find(dag, "n")
	if !ok {
		s.t.Fatalf("dag/%s does not run", dag)
	}
	s.start(e)
	s.end(e.Owner, e.Key, func(r *schemas.Run) {
		r.Outcome, r.FinishedAt = schemas.OutcomeFailed, schemas.NewTime(s.now)
		r.Turn = &schemas.Turn{Failure: &schemas.TurnFailure{Class: schemas.FailureService}}
	})
	s.settle()
}

// TestHealthBreaker lets runs of one DAG open the breaker of an agent: another DAG waits, one run is tried, and its success lets all go on.
func TestHealthBreaker(t *testing.T) {
	s := healthSim(t, "")
	s.settle()
	for i := range 5 {
		if _, ok := s.find("e", "n"); !ok {
			t.Fatalf("after %d failures the other DAG waits", i)
		}
		s.fail("d")
	}
	if n := s.dag("e").Nodes.Of("n"); n.Reason != settle.ReasonAgentUnhealthy || n.RetryAt.IsZero() || n.State != schemas.NodeQueued {
		t.Fatalf("the breaker is open, and the other DAG is %s: %s", n.State, n.Reason)
	}
	if len(s.effects()) != 0 {
		t.Fatal("work is wanted of an agent whose breaker is open")
	}
	s.now = s.now.Add(time.Minute)
	s.dirty[schemas.DAGKind.Ref("d")], s.dirty[schemas.DAGKind.Ref("e")] = true, true // as their clocks say
	s.settle()
	tried := admission.Admit(s.tree(), pointers(s.effects()), nil, "p1", 8, 64, new(budgets.Ledger), new(admission.Turns), s.now)
	if len(tried) != 1 {
		t.Fatalf("%d runs are tried", len(tried))
	}
	s.start(tried[0])
	s.dirty[tried[0].Owner] = true
	s.settle()
	if got := s.effects(); len(got) != 1 || got[0].Key != tried[0].Key {
		t.Errorf("while one run is tried, %d are wanted", len(got))
	}
	s.end(tried[0].Owner, tried[0].Key, func(r *schemas.Run) { r.Outcome = schemas.OutcomeSucceeded })
	s.settle()
	if got := s.effects(); len(got) != 1 || got[0].Owner == tried[0].Owner {
		t.Errorf("after the success %d are wanted", len(got))
	}
}

// TestHealthOfEndingTries cancels the run with which an agent is tried: until it has ended no other one is tried, in no process.
func TestHealthOfEndingTries(t *testing.T) {
	s := healthSim(t, "")
	s.put("reconcile.yaml", "apiVersion: reconcile.dev/v1alpha1\nkind: Settings\nmetadata: {name: settings}\nspec: {breaker: {failures: 1}}\n")
	s.settle()
	s.fail("e")
	s.now = s.now.Add(time.Minute)
	s.dirty[schemas.DAGKind.Ref("d")], s.dirty[schemas.DAGKind.Ref("e")] = true, true // as their clocks say
	s.settle()
	try := s.effects()
	if len(try) != 2 || try[0].Owner.Name != "d" {
		t.Fatalf("%d runs may be tried", len(try))
	}
	s.start(try[0])
	for i, change := range []func(){
		func() {},
		func() {
			s.put("specs/actions/stop.yaml", head("Action", "stop")+"spec: {target: dag/d, verb: cancel, by: alice, at: "+s.now.Format(time.RFC3339)+"}\n")
		},
		func() { s.put("specs/dags/d.yaml", "") },
	} {
		change()
		s.settle()
		for _, self := range []string{"p1", "p2"} {
			if more := admission.Admit(s.tree(), pointers(s.effects()), nil, self, 8, 64, new(budgets.Ledger), new(admission.Turns), s.now); len(more) > 0 {
				t.Errorf("change %d: %s tries another run while one ends: %s", i, self, more[0].Key)
			}
		}
	}
	s.end(try[0].Owner, try[0].Key, func(r *schemas.Run) { r.Outcome = schemas.OutcomeCancelled })
	s.settle()
	if got := s.effects(); len(got) != 1 || got[0].Owner != try[1].Owner {
		t.Errorf("after its end %d are wanted", len(got))
	}
}

// TestHealthOfWaitingNodes lets a run fail that had started when the breaker opened: a node that waits says what is so then.
func TestHealthOfWaitingNodes(t *testing.T) {
	s := healthSim(t, "")
	s.put("reconcile.yaml", "apiVersion: reconcile.dev/v1alpha1\nkind: Settings\nmetadata: {name: settings}\nspec: {breaker: {failures: 1}}\n")
	s.put("specs/dags/f.yaml", head("DAG", "f")+"spec: {session: s, nodes: [{name: n, agent: ben, prompt: Go.}]}\n")
	s.settle()
	e, ok := s.find("e", "n")
	if !ok {
		t.Fatal("dag/e does not run")
	}
	s.start(e)
	s.fail("d")
	for n, says := range []string{"1 run in a row failed", "2 runs in a row failed"} {
		if is := s.dag("f").Nodes.Of("n"); is.Reason != settle.ReasonAgentUnhealthy || !strings.Contains(is.Message, says) {
			t.Errorf("after failure %d a node that waits says %s: %s", n+1, is.Reason, is.Message)
		}
		if n > 0 {
			break
		}
		s.end(e.Owner, e.Key, func(r *schemas.Run) {
			r.Outcome, r.Turn = schemas.OutcomeFailed, &schemas.Turn{Failure: &schemas.TurnFailure{Class: schemas.FailureService}}
		})
		s.settle()
	}
}
