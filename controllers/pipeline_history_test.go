package controllers

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/mutants"
)

// TestRandomPipelineHistories is TestRandomHistories for agents in workspaces whose changes are inspected, tested, reviewed, given tests
// and landed, while people advise, take, ignore, skip and repeat, and pipelines are edited. No change lands that did not pass, or that
// no person took.
func TestRandomPipelineHistories(t *testing.T) {
	testPipelines(t, mutants.Size(4, 10, 200), false, 574)
}

// TestRandomQualityHistories has sessions whose work is verified as a whole in addition: none is Completed for its end that is not verified.
func TestRandomQualityHistories(t *testing.T) {
	testPipelines(t, mutants.Size(3, 6, 100), true)
}

// testPipelines tests the first seeds, and those that found faults later.
func testPipelines(t *testing.T, first int, quality bool, found ...uint64) {
	const steps = 90
	for seed := range uint64(first) {
		found = append(found, seed)
	}
	for _, seed := range found {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			h := &pipelineChaos{quality: quality, chaos: &chaos{sim: newSim(t), r: rand.New(rand.NewPCG(seed, 41))}, taken: map[string]bool{}, phases: map[schemas.Ref]string{}}
			h.nodeFields, h.sessionFields, h.use = h.verifiedNode, h.pipelineOf, h.detail
			h.fresh, h.untimed = true, quality
			h.setUp()
			h.agents()
			for i := 0; i < steps && !t.Failed(); i++ {
				h.step()
				if h.turn(); h.r.IntN(4) == 0 {
					h.decide()
					h.turn()
				}
				h.verified()
			}
			if !t.Failed() {
				h.passAll()
			}
			if t.Failed() {
				t.Logf("seed %d:\n%s", seed, strings.Join(h.log, "\n"))
			}
		})
	}
}

type pipelineChaos struct {
	*chaos
	quality bool // sessions are verified
	phases  map[schemas.Ref]string
	made    int             // commits
	taken   map[string]bool // DAG/node of which a person took or ignored anything
	calm    bool            // all that is verified passes
}

func (c *pipelineChaos) agents() {
	for name, spec := range map[string]string{
		"engineer": "role: engineer, workspace: clone, runner: {acp: {argv: [engineer]}}",
		"reviewer": "role: inspector, runner: {acp: {argv: [reviewer]}}",
		"tester":   "role: tester, runner: {acp: {argv: [tester]}}",
	} {
		c.put("specs/agents/"+name+".yaml", head("Agent", name)+"spec: {"+spec+"}\n")
	}
}

// pipeline is a random pipeline as YAML.
func (c *pipelineChaos) pipeline() string {
	return fmt.Sprintf("{maxLoops: %d%s%s}", 1+c.r.IntN(2), pick(c.r, "", "", ", inspector: reviewer"), pick(c.r, "", "", ", tester: tester"))
}

func (c *pipelineChaos) pipelineOf() string {
	text := pick(c.r, "", ", pipeline: "+c.pipeline())
	if c.quality && c.r.IntN(3) > 0 {
		text += fmt.Sprintf(", whenDone: %s, quality: {fix: %v, rounds: %d}", pick(c.r, "stay", "complete"), c.r.IntN(2) == 0, 1+c.r.IntN(2))
	}
	return text
}

func (c *pipelineChaos) verifiedNode(_ int, _ []string) string {
	if c.r.IntN(4) == 0 {
		return ""
	}
	text := fmt.Sprintf("      agent: engineer\n      prompt: %s\n", pick(c.r, "work", "more"))
	if c.r.IntN(2) == 0 {
		text += "      pipeline: " + c.pipeline() + "\n"
	}
	return text
}

func (c *pipelineChaos) commit() string {
	c.made++
	return fmt.Sprintf("c%d", c.made)
}

// detail says what a run left.
func (c *pipelineChaos) detail(r *schemas.Run) {
	ok := r.Outcome == schemas.OutcomeSucceeded
	switch {
	case r.Lands != "" && ok:
		r.Workspace = &schemas.RunWorkspace{Kind: schemas.WorkspaceClone, Name: "w", Base: "b", Commit: "on" + c.commit()}
	case r.Lands != "":
		r.Workspace = &schemas.RunWorkspace{Kind: "land", Name: "w", Reason: pick(c.r, schemas.LandedConflict, schemas.LandedConflict,
			schemas.LandedFailed, schemas.LandedRefused, schemas.LandedTestsConflict)}
	case r.Verifies != "" && ok:
		r.Result = c.verdict(r)
	case r.Agent == "engineer" && r.Outcome != "":
		r.Workspace = &schemas.RunWorkspace{Kind: schemas.WorkspaceClone, Name: "w", Base: "b"}
		if c.calm || c.r.IntN(5) > 0 {
			r.Workspace.Commit, r.Workspace.Tree = c.commit(), fmt.Sprintf("t%d", c.r.IntN(6))
			if c.calm {
				r.Workspace.Tree = "t" + r.Workspace.Commit
			}
			r.Workspace.Files, r.Workspace.Changed = []string{"a.go"}, 1
		}
		if !c.calm && c.r.IntN(6) == 0 {
			r.Workspace.Doubts = []string{"removes TestA"}
		}
		r.Turn = &schemas.Turn{Runner: schemas.RunnerACP, SessionID: "s1"}
	}
	c.note("%s %s: %s %s", r.Key, r.Part(), r.Result, asText(r.Workspace))
}

func asText(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// verdict is the evidence of a step.
func (c *pipelineChaos) verdict(r *schemas.Run) json.RawMessage {
	passed := `{"outcome":"passed","summary":"clean","tools":[{"tool":"flake8","category":"linter","outcome":"passed"}]`
	if r.Step == schemas.StepWrite {
		r.Workspace = &schemas.RunWorkspace{Kind: schemas.WorkspaceClone, Name: "v", Base: "b", Commit: c.commit(), Tree: "tt", Files: []string{"a_test.go"}, Changed: 1}
		written := `{"outcome":"passed","summary":"wrote tests","written":{"by":"tester","files":["a_test.go"],"tests":["TestNew"]}`
		if !c.calm && c.r.IntN(4) == 0 {
			r.Workspace, written = nil, `{"outcome":"unknown","summary":"no JSON"`
		}
		return json.RawMessage(written + "}")
	}
	if c.calm || c.r.IntN(2) == 0 {
		return json.RawMessage(passed + "}")
	}
	if r.Step == schemas.StepInspect && c.r.IntN(6) == 0 {
		return json.RawMessage(passed + `,"unchecked":["bin/deploy"]}`)
	}
	return json.RawMessage(pick(c.r,
		`{"outcome":"failed","summary":"1 finding","tools":[{"tool":"flake8","category":"linter","outcome":"failed","findings":1}],"findings":[{"id":"1","file":"a.go","line":1,"category":"linter","severity":"medium","message":"bad","tool":"flake8"}]}`,
		`{"outcome":"failed","summary":"1 failed","failures":[{"name":"TestNew","outcome":"failed","blame":"unclear","why":"of its reason"}]}`,
		`{"outcome":"failed","summary":"1 failed","failures":[{"name":"TestA","outcome":"failed"}]}`,
		`{"outcome":"unknown","summary":"it crashed","tools":[{"tool":"flake8","category":"linter","outcome":"unknown"}]}`,
		`{"outcome":"unknown","summary":"flake8 is unknown","tools":[{"tool":"flake8","category":"linter","outcome":"unknown","notInstalled":true}]}`,
		`{}`))
}

// personDoes writes an action of a person.
func (c *pipelineChaos) personDoes(target, verb, more string) {
	c.actions++
	name := fmt.Sprintf("b%d", c.actions)
	text := head("Action", name) + fmt.Sprintf("spec: {target: %s, verb: %s, by: ada, proof: account, at: %q%s}\n", target, verb,
		c.now.Format("2006-01-02T15:04:05.000Z"), more)
	c.note("%s", text)
	c.put("specs/actions/"+name+".yaml", text)
}

// ended checks that no session comes to its end unverified.
func (c *pipelineChaos) ended() {
	for ref, e := range c.entries {
		st, ok := e.Status().(*schemas.SessionStatus)
		spec := state.SpecOf[*schemas.SessionSpec](e)
		if !ok || spec == nil {
			continue
		}
		was := c.phases[ref]
		if c.phases[ref] = st.Phase; spec.Quality == nil || was == st.Phase || st.Phase != schemas.SessionCompleted || st.Progress.Done == 0 {
			continue
		}
		if v := st.Condition(schemas.Verified); v == nil || v.Status != schemas.True {
			c.t.Errorf("%s is completed, and verified: %+v", ref, v)
		}
	}
}

// decide has a person decide about a change that is verified.
func (c *pipelineChaos) decide() {
	if c.quality {
		c.personDoes(fmt.Sprintf("session/s%d", c.r.IntN(3)), pick(c.r, schemas.VerbApprove, schemas.VerbRetry), "")
	}
	for _, ref := range slices.SortedFunc(maps.Keys(c.entries), schemas.Ref.Compare) {
		st, ok := c.entries[ref].Status().(*schemas.DAGStatus)
		if !ok || c.r.IntN(2) == 0 {
			continue
		}
		for name, n := range st.Nodes.All() {
			if n.Pipeline == nil || c.r.IntN(2) == 0 {
				continue
			}
			verb := pick(c.r, schemas.VerbApprove, "ignore-inspector", "ignore-tester", schemas.VerbPrompt, schemas.VerbPrompt, schemas.VerbHandoff)
			more := ", node: " + name
			switch {
			case verb == schemas.VerbPrompt:
				more += ", text: Otherwise."
			case n.Pipeline.Digest == "" && verb != schemas.VerbHandoff:
				continue
			case verb != schemas.VerbHandoff:
				more += fmt.Sprintf(", digest: %q", n.Pipeline.Digest)
				c.taken[ref.Name+"/"+name] = true
			}
			c.personDoes(ref.String(), verb, more)
		}
	}
}

// verified checks what is wanted, and what is done.
func (c *pipelineChaos) verified() {
	c.eachWanted(func(e settle.Effect, at string, claimed bool) {
		if l, ok := e.Task.(*settle.Land); ok && !claimed && !c.taken[at] {
			c.mayLand(c.entries[e.Owner], e.Node, l)
		}
	})
	c.done()
	c.ended()
}

// done checks that a node that succeeded has landed what it left.
func (c *pipelineChaos) done() {
	for ref, e := range c.entries {
		st, ok := e.Status().(*schemas.DAGStatus)
		if !ok || e.Broken() {
			continue
		}
		for name, n := range st.Nodes.All() {
			if n.State != schemas.NodeSucceeded || n.Reason == settle.ReasonApproved {
				continue
			}
			var last *schemas.Run
			landed := map[string]bool{}
			for _, r := range e.Runs() {
				switch {
				case r.Lands != "" && r.Outcome == schemas.OutcomeSucceeded:
					landed[r.Lands] = true
				case r.Node == name && r.NodeKey == n.Key && r.IsWork() && r.Outcome == schemas.OutcomeSucceeded && (last == nil || r.Seq > last.Seq):
					last = r
				}
			}
			if last != nil && last.Workspace != nil && last.Workspace.Commit != "" && !landed[last.Key] {
				c.t.Errorf("node %s of %s succeeded, and %s has not landed", name, ref, last.Workspace.Commit)
			}
		}
	}
}

// mayLand checks that a change that no person took has passed all that its pipeline has.
func (c *pipelineChaos) mayLand(entry *state.Entry, node string, l *settle.Land) {
	p := c.pipelineIn(entry, node)
	if p == nil {
		return
	}
	steps := []string{schemas.StepInspect, schemas.StepTest}
	if p.Inspector != "" {
		steps = append(steps, schemas.StepReview)
	}
	if p.Tester != "" {
		steps = append(steps, schemas.StepWrite)
	}
	last := map[string]string{}
	for _, r := range entry.Runs() { // in the order of their numbers within a key
		if r.Verifies == l.Run {
			var is struct {
				Outcome   string
				Unchecked []string
			}
			if err := json.Unmarshal(r.Result, &is); err != nil || r.Outcome != schemas.OutcomeSucceeded || len(is.Unchecked) > 0 {
				is.Outcome = "unknown"
			}
			last[r.Step] = is.Outcome
		}
	}
	for _, step := range steps {
		if last[step] != "passed" {
			c.t.Errorf("the change of %s, node %s, is to land, and its step %s has %q", entry.Ref, node, step, last[step])
		}
	}
	for _, r := range entry.Runs() {
		if r.Key == l.Run && len(r.Workspace.Doubts) > 0 {
			c.t.Errorf("the change of %s, node %s, is to land, and there is a doubt", entry.Ref, node)
		}
	}
}

// pipelineIn is the pipeline of a node; nil for none.
func (c *pipelineChaos) pipelineIn(entry *state.Entry, node string) *schemas.Pipeline {
	spec := state.SpecOf[*schemas.DAGSpec](entry)
	if spec == nil || spec.Node(node) == nil {
		return nil
	}
	if p := spec.Node(node).Pipeline; p != nil {
		return p
	}
	s := c.entries[schemas.SessionKind.Ref(spec.Session)]
	if s == nil || state.SpecOf[*schemas.SessionSpec](s) == nil {
		return nil
	}
	return state.SpecOf[*schemas.SessionSpec](s).Pipeline
}

// passAll lets everything run to its end, where all that is verified passes: nothing may work for ever.
func (c *pipelineChaos) passAll() {
	c.calm = true
	c.toEnd(300, 5*time.Second, c.detail, func() {
		c.turn()
		c.verified()
	})
}
