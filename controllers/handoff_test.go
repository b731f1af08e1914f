package controllers

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/controllers/dags"
	"reconcile.dev/reconcile/controllers/planchanges"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// handingOver is a tree with a node whose engineer can hand its work over.
func handingOver(t *testing.T) *sim {
	s := newSim(t)
	s.put("specs/sessions/main.yaml", "apiVersion: reconcile.dev/v1alpha1\nkind: Session\nmetadata: {name: main}\nspec: {title: Main}\n")
	s.put("specs/agents/engineer.yaml", "apiVersion: reconcile.dev/v1alpha1\nkind: Agent\nmetadata: {name: engineer}\n"+
		"spec: {role: engineer, workspace: clone, runner: {acp: {argv: [engineer]}}}\n")
	s.put("specs/dags/work.yaml", "apiVersion: reconcile.dev/v1alpha1\nkind: DAG\nmetadata: {name: work}\n"+
		"spec: {session: main, nodes: [{name: n, agent: engineer, prompt: Build it., retry: {limit: 0}}]}\n")
	s.settle()
	return s
}

// handOff runs the node once, and its agent hands the rest of the task off.
func handOff(s *sim) {
	e, ok := s.find("work", "n")
	if !ok {
		s.t.Fatalf("n does not want to run: %s", s.states("work"))
	}
	s.start(e)
	s.settle()
	s.finish("work", "n", schemas.OutcomeHandedOff, nil)
	s.settle()
}

// say is a word of a person about the hand-offs of the node.
func say(s *sim, verb string, n int) {
	name := fmt.Sprintf("%s-%d", verb, n)
	s.put("specs/actions/"+name+".yaml", fmt.Sprintf("apiVersion: reconcile.dev/v1alpha1\nkind: Action\nmetadata: {name: %s}\n"+
		"spec: {target: dag/work, node: n, verb: %s, by: ada}\n", name, verb))
	s.settle()
}

// The bound is on what no person asked for: a person may hand over as often as it takes.
func TestHandoffsOfPeopleAreUnbounded(t *testing.T) {
	t.Parallel()
	s := handingOver(t)
	const own = 12
	for n := range own + 3 {
		say(s, schemas.VerbStopHandoff, n)
		handOff(s)
		if got := s.states("work"); !strings.Contains(got, "n Blocked/HandoffStopped") {
			t.Fatalf("stopped %d times: %s", n+1, got)
		}
		say(s, schemas.VerbHandoff, n)
	}
	for range own {
		handOff(s)
		if got := s.states("work"); !strings.Contains(got, "n Queued") {
			t.Fatalf("after %d hand-offs: %s", s.dag("work").Nodes.Of("n").Handoff.Index, got)
		}
	}
	handOff(s)
	n := s.dag("work").Nodes.Of("n")
	if n.Reason != "TooManyHandoffs" || !strings.Contains(n.Message, "13 times") || n.Handoff.Index != 2*own+3 {
		t.Errorf("after a hand-off too many: %s: %s, pipeline %d", n.Reason, n.Message, n.Handoff.Index)
	}
}

// Who stopped hand-offs before the work began can let them again.
func TestHandoffsAreLetBeforeTheyBegin(t *testing.T) {
	t.Parallel()
	s := handingOver(t)
	say(s, schemas.VerbHandoff, 0)
	say(s, schemas.VerbStopHandoff, 1)
	say(s, schemas.VerbHandoff, 2)
	all := s.dag("work").Actions
	if len(all) != 3 || !strings.Contains(all[0].Refused, "n has not begun") || all[1].Refused+all[2].Refused != "" {
		t.Errorf("actions %+v, want only the first one refused", all)
	}
	handOff(s)
	if h := s.dag("work").Nodes.Of("n").Handoff; h.Stopped != nil || len(h.Chain) != 1 || h.Chain[0].Action != "" || h.Index != 1 {
		t.Errorf("the hand-offs: %+v", h)
	}
}

// An answer that cannot be applied is quoted in part: it may be as long as any result.
func TestHandoffsWithLongAnswers(t *testing.T) {
	t.Parallel()
	s := handingOver(t)
	s.put("specs/agents/architect.yaml", "apiVersion: reconcile.dev/v1alpha1\nkind: Agent\nmetadata: {name: architect}\n"+
		"spec: {runner: {command: {argv: [architect], output: json}}}\n")
	handOff(s)
	for range 2 { // the request, and the question
		for _, spec := range s.derive() {
			s.write(spec)
		}
		s.settle()
	}
	change := s.dag("work").Nodes.Of("n").Handoff.Chain[0].PlanChange
	e, ok := s.find(change+"-answer", "answer")
	if !ok {
		t.Fatalf("nobody is asked: %s", s.states("work"))
	}
	s.start(e)
	s.settle()
	s.finish(change+"-answer", "answer", schemas.OutcomeSucceeded, func(r *schemas.Run) {
		r.Result = fmt.Appendf(nil, `{"accept": true, "edit": {"remove": [%q]}}`, strings.Repeat("x", 500_000))
	})
	s.settle()
	for _, ref := range []schemas.Ref{schemas.PlanChangeKind.Ref(change), schemas.DAGKind.Ref("work")} {
		if text := s.text(ref, s.entries[ref].Status()); len(text) > 20_000 || !strings.Contains(text, "try 2 of 3") {
			t.Errorf("the status of %s has %d bytes: %.2000s", ref, len(text), text)
		}
	}
}

// A tree of a version without hand-offs has records of runs that handed their task off, and nothing of that in the status.
func TestHandoffsOfOldTrees(t *testing.T) {
	t.Parallel()
	s := handingOver(t)
	handOff(s)
	handOff(s)
	ref := schemas.DAGKind.Ref("work")
	b, err := state.EncodeStatus(ref, s.dag("work"))
	if err != nil {
		t.Fatal(err)
	}
	var file map[string]any
	if err := json.Unmarshal(b, &file); err != nil {
		t.Fatal(err)
	}
	status := file["status"].(map[string]any)
	delete(status["nodes"].(map[string]any)["n"].(map[string]any), "handoff")
	if b, err = json.Marshal(status); err != nil {
		t.Fatal(err)
	}
	old := new(schemas.DAGStatus)
	if err := json.Unmarshal(b, old); err != nil || old.Nodes.Of("n").Handoff != nil {
		t.Fatalf("the old status: %v, %+v", err, old.Nodes.Of("n").Handoff)
	}
	s.entry(ref).SetStatus(old)
	s.put("specs/agents/architect.yaml", "apiVersion: reconcile.dev/v1alpha1\nkind: Agent\nmetadata: {name: architect}\n"+
		"spec: {runner: {command: {argv: [architect], output: json}}}\n")
	s.now = s.now.Add(planchanges.HandoffLimit)
	s.settle()
	h := s.dag("work").Nodes.Of("n").Handoff
	if len(h.Chain) != 2 || h.Chain[0].Phase != schemas.HandoffCompleted || h.Chain[1].Phase != schemas.HandoffFailed || h.Index != 1 {
		t.Fatalf("the hand-offs by the records: %+v", h)
	}
	s.derive()
	e, ok := s.find("work", "n")
	if !ok || e.Seq != 3 || !strings.Contains(e.Command().Stdin, "as pipeline 1 of it") || e.Command().Workspace.Continues != h.Chain[1].Run {
		t.Errorf("the next run: %v, %d, %+v", ok, e.Seq, e.Task)
	}
	if len(s.checkpoints) != 1 || !s.checkpoints[0].Hands(&h.Chain[1]) {
		t.Errorf("the records: %v, want one of the latest hand-off", s.checkpoints)
	}
}

// Who asks about a task whose work was handed over is told the use of the present context, and the latest commit.
func TestTaskAfterAHandoff(t *testing.T) {
	t.Parallel()
	s := handingOver(t)
	for n := range 2 {
		e, _ := s.find("work", "n")
		s.start(e)
		s.settle()
		s.finish("work", "n", schemas.OutcomeHandedOff, func(r *schemas.Run) {
			r.Turn = &schemas.Turn{Usage: &schemas.Usage{ContextUsed: 40_000, ContextWindow: 100_000}}
			r.Workspace = &schemas.RunWorkspace{Commit: fmt.Sprint("c", n), Changed: n + 1}
		})
		s.settle()
	}
	e, _ := s.find("work", "n")
	s.start(e)
	view := func() dags.TaskView {
		s.settle()
		ref, tree := schemas.DAGKind.Ref("work"), s.tree()
		v, ok := dags.Task(settle.In{Entry: tree.Entry(ref), Tree: tree, Now: s.now, World: settle.NewWorld(tree, s.now, nil)}, "n")
		if !ok {
			t.Fatal("dag/work has no task n")
		}
		return v
	}
	if v := view(); v.Engineer.ContextUsage != 0 || !slices.Equal(v.Engineer.Accomplished, []string{"committed changes of 2 files as c1"}) {
		t.Errorf("in a new conversation: %v used, %q", v.Engineer.ContextUsage, v.Engineer.Accomplished)
	}
	s.entry(schemas.DAGKind.Ref("work")).Claims[0].Turn = &schemas.Turn{Usage: &schemas.Usage{ContextUsed: 10_000, ContextWindow: 100_000}}
	if v := view(); v.Engineer.ContextUsage != 0.1 || v.Handoff.Chain[1].ContextUsage != 0.4 {
		t.Errorf("while it works: %v used, and %v at the hand-off", v.Engineer.ContextUsage, v.Handoff.Chain[1].ContextUsage)
	}
}
