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

// An agent that a pipeline names looks at each change after the tools. Its turn is an effect like the verifications by tools, under the
// same key, and like any turn of an agent: it counts against budgets, waits for limits, and is on record. It cannot change
// the commit. A review without a verdict does not count against the author of the change: the agent is asked again, and then a person decides.

// mostVerdicts is how often an agent is asked about one change without giving a verdict.
const mostVerdicts = 2

// unfit says why an agent cannot do a step; "" if it can.
func (f *fold) unfit(i int32, name, step string) string {
	switch a := f.b.Agent(f.p, name); {
	case a == nil || a.Runner.AsCommand() == nil:
		return "is missing, cannot be used, or is a person, who decides by approve"
	case a.Role != stepAgent(step):
		return fmt.Sprintf("has the role %s, and not %s", a.Role, stepAgent(step))
	case !a.Runner.ReadsFiles():
		return "cannot read the files of the change, of which its prompt has a part: its runner.http has no tools: read"
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
	if checks.EvidenceOf(r).Outcome == checks.Unknown {
		if v.unknown == nil {
			v.unknown = map[string]int{}
		}
		v.unknown[r.Step+" "+r.Verifies]++
	}
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
	found := checks.EvidenceOf(v.verdicts[schemas.StepInspect])
	w.Prompt, w.Schema = agentio.ReviewTask(w.Prompt), json.RawMessage(checks.OpinionSchema)
	w.Review = &agentio.Review{Of: v.of.Agent, Found: found.Summary + "\n" + found.Text() + found.AcceptedText()}
	var b strings.Builder
	for n, record := range v.back {
		e := checks.EvidenceOf(record)
		fmt.Fprintf(&b, "change %d, sent back by the %s: %s\n%s", n+1, stepAgent(record.Step), e.Summary, found.Before(e))
	}
	w.Review.Earlier = b.String()
	w.Fit(agent.PromptTokens, tokens.Count)
	return w
}
