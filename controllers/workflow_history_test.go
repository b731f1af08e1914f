package controllers

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/workflows"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/mutants"
)

// TestRandomWorkflowHistories is TestRandomControlHistories with workflows that are started more than once for an issue, while they and their
// runs are edited, and agents in them ask. A start makes one run, while no other one of its workflow and issue is open, and no round is
// beyond the last one.
func TestRandomWorkflowHistories(t *testing.T) {
	const steps = 70
	for seed := range uint64(mutants.Size(3, 8, 60)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			h := &workflowChaos{controlChaos: &controlChaos{newExpanded(t, seed, 71), true}, madeBy: map[string]string{}}
			h.setUpWorkflows()
			for i := 0; i < steps && !t.Failed(); i++ {
				h.control()
				h.step()
				h.startWorkflows()
				h.turn()
				h.invariants()
				h.alone()
				h.rounds()
			}
			if !t.Failed() {
				h.end()
			}
			if t.Failed() {
				t.Logf("seed %d:\n%s", seed, strings.Join(h.log, "\n"))
			}
		})
	}
}

type workflowChaos struct {
	*controlChaos
	madeBy map[string]string // the DAGs that starts made, by the start
}

func (c *workflowChaos) setUpWorkflows() {
	c.put("reconcile.yaml", "apiVersion: reconcile.dev/v1alpha1\nkind: Settings\nmetadata: {name: settings}\nspec: {limits: {sessions: 20}}\n")
	c.put("specs/agents/engineer.yaml", head("Agent", "engineer")+"spec: {canClarify: [boss], runner: {command: {argv: [engineer]}}}\n")
	for i := range 2 {
		c.workflow(i)
	}
}

// workflow writes a workflow whose second step goes back to its first one.
func (c *workflowChaos) workflow(i int) {
	text := head("Workflow", fmt.Sprintf("w%d", i)) + fmt.Sprintf("spec:\n  params: {tone: {default: %s}, size: {type: integer%s}}\n  steps:\n"+
		"    - {id: a, agent: engineer, prompt: '{{ issue.title }} {{ params.%s }}'}\n"+
		"    - {id: b, agent: %s, needs: [a], iterate: true, iterate_from: a, max_iterations: %d, completion_criteria: len(result) > 1}\n"+
		"    - {id: c, agent: boss, needs: [b], optional: true%s}\n", pick(c.r, "calm", "loud"), pick(c.r, "", ", default: 1"),
		pick(c.r, "tone", "size"), pick(c.r, "engineer", "engineer", "engineer", "nobody"), 1+c.r.IntN(3), pick(c.r, "", ", condition: params.size > 1"))
	if c.r.IntN(2) == 0 {
		text += "    - {id: d, agent: engineer, needs: [a], can_clarify: []}\n"
	}
	c.note("workflow %s", text)
	c.put(fmt.Sprintf("specs/workflows/w%d.yaml", i), text)
}

// startWorkflows starts and edits workflows, and acts on their runs.
func (c *workflowChaos) startWorkflows() {
	switch c.r.IntN(10) {
	case 0, 1:
		c.startOne()
	case 2:
		c.workflow(c.r.IntN(2))
	case 3, 4:
		c.actOnRun()
	case 5:
		c.editRun()
	case 6, 7:
		c.ask()
	case 8:
		c.answer()
	case 9:
		c.put("specs/agents/nobody.yaml", pick(c.r, "", head("Agent", "nobody")+"spec: {runner: {command: {argv: [nobody]}}}\n"))
		c.note("nobody comes or goes")
	}
}

func (c *workflowChaos) startOne() {
	c.actions++
	name := fmt.Sprintf("start%d", c.actions)
	text := head("Action", name) + fmt.Sprintf("spec: {verb: start, target: workflow/w%d, issue: %d%s%s, params: {%s}}\n", c.r.IntN(2), 1+c.r.IntN(2),
		pick(c.r, ", text: '# Title'", ", text: '# Other'", ""), pick(c.r, "", "", ", skip: [c]", ", skip: [a]"),
		pick(c.r, "size: 1", "size: 2", "size: 2, tone: calm", "tone: loud", "size: big"))
	c.note("%s", text)
	c.put("specs/actions/"+name+".yaml", text)
}

// run is one of the DAGs that starts made; nil for none.
func (c *workflowChaos) run() *state.Entry {
	var all []*state.Entry
	for _, name := range slices.Sorted(maps.Values(c.madeBy)) {
		if e := c.entries[schemas.DAGKind.Ref(name)]; e != nil && !e.Gone() {
			all = append(all, e)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return pick(c.r, all...)
}

// actOnRun writes an action about a run, or a step of it.
func (c *workflowChaos) actOnRun() {
	e := c.run()
	if e == nil {
		return
	}
	c.actions++
	name, spec := fmt.Sprintf("a%d", c.actions), fmt.Sprintf("target: %s, at: %q, verb: ", e.Ref, c.now.Format(time.RFC3339Nano))
	spec += pick(c.r, "retry", "retry, all: true", "cancel", "cancel, mode: immediate", "pause", "resume", "retry, node: a", "retry, node: b",
		"skip, node: a", "skip, node: b", "skip, node: c", "approve, node: b", "approve, node: c", "approve, node: c, answer: 'Yes.'", "cancel, node: b")
	c.note("action %s: %s", name, spec)
	c.put("specs/actions/"+name+".yaml", head("Action", name)+"spec: {"+spec+"}\n")
}

// editRun edits, or removes, the file of a run or of its session.
func (c *workflowChaos) editRun() {
	e := c.run()
	if e == nil || e.Object == nil {
		return
	}
	if c.r.IntN(4) == 0 {
		path := pick(c.r, e.Object.Path, fmt.Sprintf("specs/sessions/%s.yaml", e.Name))
		c.note("rm %s", path)
		c.put(path, "")
		c.drop(e.Name)
		return
	}
	var text strings.Builder
	spec := state.SpecOf[*schemas.DAGSpec](e)
	if spec == nil {
		return
	}
	edited := *spec
	edited.Nodes = slices.Clone(spec.Nodes)
	switch n := &edited.Nodes[c.r.IntN(len(edited.Nodes))]; {
	case n.Repeat != nil:
		repeat := *n.Repeat
		repeat.Max = 1 + c.r.IntN(4)
		n.Repeat = &repeat
	case c.r.IntN(3) == 0:
		edited.With = map[string]any{"size": 1 + c.r.IntN(3)}
	default:
		n.Prompt = pick(c.r, "Otherwise.", "{{ issue.title }}", "{{ params.size }}")
	}
	fmt.Fprintf(&text, "%sspec: %s\n", head("DAG", e.Name), asText(edited))
	c.note("edit %s", text.String())
	c.put(e.Object.Path, text.String())
}

// drop drops what is known of the successes of a run that was removed.
func (c *workflowChaos) drop(name string) {
	maps.DeleteFunc(c.succeeded, func(key, _ string) bool { return strings.HasPrefix(key, name+"/") })
}

// ask has agents of runs end with questions.
func (c *workflowChaos) ask() {
	e := c.run()
	if e == nil {
		return
	}
	for _, cl := range slices.Clone(e.Claims) {
		if cl.Agent == "engineer" && !cl.StartedAt.IsZero() {
			c.note("ask %s", cl.Key)
			c.asks(e.Ref, cl.Key)
		}
	}
}

func (c *workflowChaos) asks(owner schemas.Ref, key string) {
	c.sim.end(owner, key, func(r *schemas.Run) {
		r.Outcome = schemas.OutcomeAsked
		r.Asks = &schemas.Ask{To: pick(c.r, "boss", "boss", "nobody"), Topic: "the " + r.Node, Question: fmt.Sprintf("Which %d?", c.r.IntN(3)), Blocking: c.r.IntN(3) > 0}
	})
}

// answer answers one of the questions.
func (c *workflowChaos) answer() {
	for _, e := range c.tree().Entries(schemas.ClarificationRequestKind.Name) {
		if c.r.IntN(2) == 0 {
			continue
		}
		c.actions++
		name, typ := fmt.Sprintf("r%d", c.actions), pick(c.r, "answer", "answer", "escalation", "abandonment", "resolution")
		c.note("%s to %s", typ, e.Name)
		c.put("specs/replies/"+name+".yaml", head("Reply", name)+fmt.Sprintf("spec: {clarification: %s, type: %s, from: boss, body: 'This one.'}\n", e.Name, typ))
		return
	}
}

// turn is that of the other histories, and checks what starts make.
func (c *workflowChaos) turn() {
	c.t.Helper()
	for range 20 {
		c.settle()
		specs := c.derive()
		for _, spec := range specs {
			c.note("derived %s", spec.Ref)
			if dag, ok := spec.Spec.(*schemas.DAGSpec); ok && dag.Workflow != nil {
				c.made(spec.Ref.Name, dag)
			}
			c.write(spec)
		}
		c.fold()
		if len(specs) == 0 && len(c.dirty) == 0 {
			return
		}
	}
	c.t.Errorf("the turn comes to no end: %v", c.dirty)
}

// made checks a new run: its start has no other one, and every other run of its workflow and issue has ended.
func (c *workflowChaos) made(name string, dag *schemas.DAGSpec) {
	start := dag.Workflow.Start
	if other, ok := c.madeBy[start]; ok && other != name && !c.entries[schemas.DAGKind.Ref(other)].Gone() {
		c.t.Errorf("%s made %s and %s", start, other, name)
	}
	c.madeBy[start] = name
	issue := func(start string) int {
		if a := state.SpecOf[*schemas.ActionSpec](c.entries[schemas.ActionKind.Ref(start)]); a != nil {
			return a.Issue
		}
		return 0
	}
	tree := c.tree()
	for _, ref := range tree.ReferrersOf(schemas.WorkflowKind.Ref(dag.Workflow.Name), schemas.DAGKind.Name) {
		e := tree.Entry(ref)
		run := state.SpecOf[*schemas.DAGSpec](e)
		if e.Name != name && run != nil && run.Workflow.Start != start && issue(run.Workflow.Start) == issue(start) && !workflows.Ended(e) {
			c.t.Errorf("%s makes %s while %s is open", start, name, e.Name)
		}
	}
}

// rounds checks that no run of a round beyond the last one starts.
func (c *workflowChaos) rounds() {
	c.eachWanted(func(e settle.Effect, _ string, claimed bool) {
		spec := state.SpecOf[*schemas.DAGSpec](c.last.Tree.Entry(e.Owner))
		if spec == nil || spec.Node(e.Node) == nil || spec.Node(e.Node).Repeat == nil {
			return
		}
		if round, most := c.dag(e.Owner.Name).Nodes.Of(e.Node).Round, spec.Node(e.Node).Repeat.Max; round > most && !claimed {
			c.t.Errorf("%s is of round %d of %d", e.Key, round, most)
		}
	})
}

// end lets all that runs succeed. Only people are waited for then, and no start is about to make a run.
func (c *workflowChaos) end() {
	c.toEnd(300, time.Second, func(*schemas.Run) {}, c.turn)
	for ref, e := range c.entries {
		if st, ok := e.Status().(*schemas.ActionStatus); ok && !e.Broken() && st.Phase == schemas.ActionPending &&
			strings.HasPrefix(ref.Name, "start") && st.Condition(schemas.Ready).Reason == settle.ReasonPending {
			c.t.Errorf("%s makes its run for ever", ref)
		}
	}
}
