package controllers

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/mutants"
)

// TestRandomFallbackHistories is TestRandomHistories for agents that stand in for each other while services fail and limits last. Agents,
// the breaker's settings and prices are edited meanwhile. Only an agent of the node, or one that stands in for it, works for it, and what
// has failed for good or succeeded ends.
func TestRandomFallbackHistories(t *testing.T) {
	const steps = 70
	for seed := range uint64(mutants.Size(4, 10, 40)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			h := &fallbackChaos{&chaos{sim: newSim(t), r: rand.New(rand.NewPCG(seed, 53)), succeeded: map[string]string{}}}
			h.nodeFields, h.use, h.fresh = h.agentNode, h.fail, true
			h.setUp()
			h.agents()
			for i := 0; i < steps && !t.Failed(); i++ {
				if h.step(); h.r.IntN(12) == 0 {
					h.agents()
				}
				h.settle()
				h.invariants()
				h.standIns()
			}
			if !t.Failed() {
				h.calmDown()
			}
			if t.Failed() {
				t.Logf("seed %d:\n%s", seed, strings.Join(h.log, "\n"))
			}
		})
	}
}

type fallbackChaos struct{ *chaos }

func (c *fallbackChaos) agents() {
	settings := fmt.Sprintf("apiVersion: reconcile.dev/v1alpha1\nkind: Settings\nmetadata: {name: settings}\nspec: {breaker: {failures: %d, wait: %ds}}\n",
		1+c.r.IntN(3), 1+c.r.IntN(5))
	c.note("%s", settings)
	c.put("reconcile.yaml", settings)
	for _, name := range []string{"engineer", "second", "third"} {
		text := head("Agent", name) + fmt.Sprintf("spec: {runner: {command: {argv: [%s]}}, fallback: %s, concurrency: %d}\n", name,
			pick(c.r, "[]", "[second]", "[second, third]", "[third, boss, second]"), 1+c.r.IntN(3))
		if strings.Contains(text, "fallback: []") || name == "second" || name == "third" && c.r.IntN(2) == 0 {
			text = head("Agent", name) + fmt.Sprintf("spec: {runner: {command: {argv: [%s]}}}\n", name)
		}
		c.note("%s", text)
		c.put("specs/agents/"+name+".yaml", text)
	}
	for ref := range c.entries { // the settings are of everything
		c.entry(ref)
	}
}

func (c *fallbackChaos) agentNode(_ int, _ []string) string {
	return fmt.Sprintf("      agent: %s\n      prompt: %s\n", pick(c.r, "engineer", "engineer", "second", "third"), pick(c.r, "work", "more"))
}

// fail says why a run failed.
func (c *fallbackChaos) fail(r *schemas.Run) {
	if r.Agent == "" || r.Outcome != schemas.OutcomeFailed && r.Outcome != schemas.OutcomeTimedOut {
		return
	}
	f := &schemas.TurnFailure{Class: pick(c.r, schemas.FailureLimit, schemas.FailureService, schemas.FailureAccess, schemas.FailureConnection,
		schemas.FailureRequest, schemas.FailureUnknown)}
	if f.Class == schemas.FailureLimit && c.r.IntN(2) == 0 {
		f.Until = schemas.NewTime(c.now.Add(time.Duration(1+c.r.IntN(8)) * time.Second))
	}
	r.Turn, r.Message = &schemas.Turn{Failure: f}, "it failed"
	c.note("%s by %s failed: %s %s", r.Key, r.Agent, f.Class, f.Until)
}

// standIns checks who works for a node.
func (c *fallbackChaos) standIns() {
	for _, e := range c.effects() {
		spec := state.SpecOf[*schemas.DAGSpec](c.entries[e.Owner])
		if spec == nil || e.Agent == "" || settle.ClaimOf(c.entries[e.Owner], e.Key) != nil {
			continue
		}
		own := spec.Node(e.Node).Agent
		agent := state.SpecOf[*schemas.AgentSpec](c.entries[schemas.AgentKind.Ref(own)])
		switch {
		case e.Agent == own && e.Instead != nil:
			c.t.Errorf("%s works in its own place: %+v", e.Key, e.Instead)
		case e.Agent == own:
		case agent == nil || !strings.Contains(strings.Join(agent.Fallback, " "), e.Agent) || e.Instead == nil || e.Instead.Of != own:
			c.t.Errorf("%s is for %s, and %s is to work (%+v)", e.Key, own, e.Agent, e.Instead)
		}
	}
}
