package dags

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/agentio"
	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/breaker"
	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/tokens"
	"reconcile.dev/reconcile/schemas"
)

// An agent that a pipeline names looks at each change after the tools, or writes tests of it. Its turn is an effect like the verifications by
// tools, under the same key, and like any turn of an agent: it counts against budgets, waits for limits, and is on record. It cannot change the
// commit. A turn without a verdict does not count against the author of the change: the agent is asked again, and then a person decides.

// unfit says why an agent cannot do a step; "" if it can.
func (f *fold) unfit(i int32, name, step string) string {
	switch a := f.b.Agent(f.p, name); {
	case a == nil || a.Runner.AsCommand() == nil:
		return "is missing, cannot be used, or is a person, who decides by approve"
	case a.Role != stepAgent(step):
		return fmt.Sprintf("has the role %s, and not %s", a.Role, stepAgent(step))
	case a.Runner.Lacks(a.Role) != "":
		return fmt.Sprintf("cannot %s files: its runner.http lacks tools: %[1]s", a.Runner.Lacks(a.Role))
	case name == f.p.Spec.Nodes[i].Agent, f.recs[i].verify.of != nil && name == f.recs[i].verify.of.Agent: // perhaps in place of another one
		return "would judge its own change"
	}
	return ""
}

// isVerdict reports whether the record of a verification counts: not that of an agent that was cancelled, or met a limit.
func (f *fold) isVerdict(v *verifying, r *schemas.Run) bool {
	switch {
	case r.Agent == "":
		return true
	case r.Outcome == schemas.OutcomeCancelled, r.StoppedByBudget():
		return false
	case f.limited(v.limits, r):
		v.limits++
		return false
	}
	if v.asked == nil {
		v.asked = map[string]int{}
	}
	v.asked[r.Agent+" "+r.Verifies]++
	return true
}

// waitsForVerifier reports whether the change of node i waits for the agent that does the next step; if so, it has set the state.
func (f *fold) waitsForVerifier(i int32) bool {
	v := &f.recs[i].verify
	agent := verifier(f.pipelineOf(i), v.step)
	if agent == "" {
		return false
	}
	if why := f.unfit(i, agent, v.step); why != "" {
		f.set(i, schemas.NodeBlocked, settle.ReasonNotVerifiable, fmt.Sprintf("its change waits for agent/%s, which %s; name another %s in the pipeline, "+
			"or none", agent, why, stepAgent(v.step)))
		return true
	}
	if !f.World.ChecksAgents() && f.standsUnhealthy(i) {
		return true
	}
	if ails := f.ails(i, agent); ails.why != "" {
		f.waitFor(i, agent, &ails)
		return true
	}
	return v.last != nil && v.last.Agent != "" && f.waitsForLimitOf(i, v.last) || f.overBudget(i, agent)
}

// review completes the effect with which an agent looks at the change of node i.
func (f *fold) review(i int32, e *settle.Effect) {
	v, p, agent := &f.recs[i].verify, f.pipelineOf(i), f.b.Agent(f.p, e.Agent)
	c := f.b.Command(f.p, i, e.Agent)
	f.fillTexts(i, &c)
	c.Dir, c.OutputFiles, c.OutputJSON, c.OutputSchema = "", nil, "", nil
	c.Needs = f.results(i)
	c.Review = &settle.Review{Run: v.of.Key, Step: v.step, Commit: v.commit, Base: v.of.Workspace.Base, FailOn: p.FailOn}
	c.Workspace = &settle.Workspace{Kind: settle.CheckWorkspace, Declared: true, Branch: "review"}
	if v.step == schemas.StepWrite {
		c.Review.Tests = testsOf(v.written)
		c.Workspace.Branch, c.Workspace.Measure, c.Workspace.Verified = f.branch(e.Node)+testsSuffix, f.previewOf(i) != nil, true
	}
	c.Sandbox = agents.Sandbox(agent, c.Profile, &settle.Workspace{Kind: schemas.WorkspaceClone})
	c.Stdin = f.reviewWork(i, agent, e.Agent, c.Needs).Stdin(c.StdinFormat)
	e.Allowances = f.b.Allowances(f.In, f.p, i, e.Agent)
	if f.ails(i, e.Agent).probe {
		e.Groups = append(slices.Clip(e.Groups), breaker.ProbeGroup(e.Agent))
	}
	e.Task = agents.Task(agent, &c, nil)
}

// reviewWork describes the change of node i to its reviewer.
func (f *fold) reviewWork(i int32, agent *schemas.AgentSpec, name string, needs map[string]settle.Need) *agentio.Work {
	v, w := &f.recs[i].verify, f.workFor(i, name, agent, needs, 1)
	before := schemas.StepInspect
	if w.Schema = json.RawMessage(checks.OpinionSchema); v.step == schemas.StepWrite {
		before, w.Prompt, w.Schema = schemas.StepTest, agentio.TestsTask(w.Prompt), json.RawMessage(checks.WrittenSchema)
	} else {
		w.Prompt = agentio.ReviewTask(w.Prompt)
	}
	found := checks.EvidenceOf(v.verdicts[before])
	w.Review = &agentio.Review{Of: v.of.Agent, Found: found.Summary + "\n" + found.Text() + found.AcceptedText()}
	if v.step == schemas.StepWrite {
		if w.Review.Fault = v.fault; v.written != nil {
			w.Review.Tests = v.written.Workspace.Files
		}
		for _, step := range []string{schemas.StepInspect, schemas.StepTest} {
			if proof := v.proofs[step]; proof != nil {
				w.Review.Fault += "\n" + checks.EvidenceOf(proof).Text()
			}
		}
	}
	var b strings.Builder
	for n, record := range v.back {
		e := checks.EvidenceOf(record)
		fmt.Fprintf(&b, "change %d, sent back by the %s: %s\n%s", n+1, stepAgent(record.Step), e.Summary, found.Before(e))
	}
	w.Review.Earlier = b.String()
	w.Fit(agent.PromptTokens, tokens.Count)
	return w
}
