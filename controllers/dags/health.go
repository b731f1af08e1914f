package dags

import (
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/breaker"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// An agent that a check found not to work, or whose last runs failed in a row, gets no work. Its nodes go to the first healthy agent of
// its fallback, under the same keys, or wait and say for what.

// agentOf is the agent that works on node i, or would; "" for a command.
func (f *fold) agentOf(i int32) string {
	named := f.p.Spec.Nodes[i].Agent
	if named == "" {
		return ""
	}
	name, r := named, &f.recs[i]
	if c, ok := f.choices[i]; ok {
		name = c.agent
	}
	switch {
	case r.claim != nil:
		name = r.claim.Agent
	case r.land.of != nil:
		name = r.land.of.Agent
	case r.verify.of != nil: // its tools run what this one wrote, and are confined as it was
		name = r.verify.of.Agent
	}
	if f.b.Agent(f.p, name) == nil {
		return named
	}
	return name
}

// instead says for whom the agent of node i works, and why; nil: for itself.
func (f *fold) instead(i int32) *schemas.Instead {
	if c := f.recs[i].claim; c != nil {
		return c.Instead
	}
	return f.choices[i].instead
}

// changesAgent reports whether another agent than that of a run works on node i, since one of them works in place of the other.
func (f *fold) changesAgent(i int32, run *schemas.Run) bool {
	return (run.Instead != nil || f.instead(i) != nil) && run.Agent != f.agentOf(i)
}

// insteadOf adds to a message who works in place of the agent that node i names.
func (f *fold) insteadOf(i int32) string {
	is := f.instead(i)
	if is == nil {
		return ""
	}
	return ", by " + is.By(f.agentOf(i))
}

// waitsForAgent chooses the agent for node i, and reports whether the node waits for one; if so, it has set the state.
func (f *fold) waitsForAgent(i int32) bool {
	named := f.p.Spec.Nodes[i].Agent
	if named == "" {
		return false
	}
	delete(f.choices, i)
	if c := f.recs[i].claim; c != nil {
		return f.losesAgent(i, c.Agent)
	}
	if !f.World.ChecksAgents() && f.standsUnhealthy(i) {
		return true
	}
	var first *ailment
	var all []ailment
	for _, name := range append([]string{named}, f.b.Agent(f.p, named).Fallback...) {
		a := f.b.Agent(f.p, name)
		if a == nil || a.Runner.AsCommand() == nil {
			continue
		}
		ails := f.ails(i, name)
		if ails.why == "" {
			f.choose(i, name, first, ails.probe)
			return false
		}
		all = append(all, ails)
		first = &all[0]
	}
	f.waitFor(i, named, first)
	for _, a := range all[1:] {
		if a.breaker != nil && a.breaker.State == breaker.Open {
			f.wakeAt(a.breaker.Until)
		}
	}
	return true
}

// choose notes who works on node i; before is what the agent that it names suffers from, nil for nothing.
func (f *fold) choose(i int32, name string, before *ailment, probe bool) {
	if before == nil && !probe {
		return
	}
	c := choice{agent: name, probe: probe}
	if before != nil {
		c.instead = &schemas.Instead{Of: f.p.Spec.Nodes[i].Agent, Why: "which cannot work: " + before.why}
	}
	if f.choices == nil {
		f.choices = map[int32]choice{}
	}
	f.choices[i] = c
}

// standsUnhealthy keeps a node waiting for its agent where no one has checked that.
func (f *fold) standsUnhealthy(i int32) bool {
	was := f.was[i]
	if was.State != schemas.NodeBlocked || was.Reason != settle.ReasonAgentUnhealthy || was.Key != f.b.Keys[i] {
		return false
	}
	f.set(i, was.State, was.Reason, was.Message)
	return true
}

// losesAgent reports whether node i, which has a claim, must not start since the runs of its agent fail.
func (f *fold) losesAgent(i int32, agent string) bool {
	b := breaker.BreakersOf(f.World.OfRun, f.Tree, f.Now).Ask(agent, f.Ref, f.p.Spec.Nodes[i].Name)
	if b.State != breaker.Open || f.retriedAfter(i, b.Last) {
		return false
	}
	f.waitFor(i, agent, &ailment{why: b.Describe(), breaker: &b})
	return true
}

// ailment is why an agent cannot work; why is "" if it can. probe says that it can have one run.
type ailment struct {
	why     string
	probe   bool
	breaker *breaker.Breaker // nil: a check found it
}

// ails says why an agent cannot work on node i.
func (f *fold) ails(i int32, agent string) ailment {
	if why, _ := f.World.Ailing(agent); why != "" {
		return ailment{why: why}
	}
	b := breaker.BreakersOf(f.World.OfRun, f.Tree, f.Now).Ask(agent, f.Ref, f.p.Spec.Nodes[i].Name)
	switch {
	case b.State == breaker.Closed:
		return ailment{}
	case b.Trying, b.State == breaker.Open && !f.retriedAfter(i, b.Last):
		return ailment{why: b.Describe(), breaker: &b}
	}
	return ailment{probe: true}
}

// wakeAt has the DAG decided again at a time, for which a one-shot run waits unless it is far off.
func (f *fold) wakeAt(at schemas.Time) {
	if at.Sub(f.Now) <= limitWait {
		f.wake(at.Time)
	} else {
		f.wakeLater(at.Time)
	}
}

// waitFor sets the state of a node whose agent cannot work.
func (f *fold) waitFor(i int32, agent string, a *ailment) {
	message := fmt.Sprintf("waits for agent/%s,%s%s", agent, breaker.Which, a.why)
	if spec := f.b.Agent(f.p, agent); spec != nil && len(spec.Fallback) > 0 {
		message += "; and neither can " + strings.Join(spec.Fallback, ", ")
	}
	switch b := a.breaker; {
	case b == nil:
		f.set(i, schemas.NodeBlocked, settle.ReasonAgentUnhealthy, message)
	case b.State == breaker.Open:
		f.set(i, schemas.NodeQueued, settle.ReasonAgentUnhealthy, message+"; one run is tried later, or now with reconcile retry")
		f.next[i].RetryAt = b.Until
		f.wakeAt(b.Until)
	default:
		f.set(i, schemas.NodeQueued, settle.ReasonAgentUnhealthy, message+"; one run is being tried")
		f.wakeLater(f.Now.Add(f.Tree.Settings().Breaker.Wait.Std())) // it may end without a record
	}
}

// retriedAfter reports whether a person retried node i after a time.
func (f *fold) retriedAfter(i int32, at schemas.Time) bool {
	name := f.p.Spec.Nodes[i].Name
	return slices.ContainsFunc(f.applied, func(a schemas.AppliedAction) bool {
		return a.Verb == schemas.VerbRetry && (a.Node == "" || a.Node == name) && a.At.After(at.Time)
	})
}
