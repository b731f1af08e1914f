package dags

import (
	"fmt"
	"slices"

	"reconcile.dev/reconcile/controllers/agentio"
	"reconcile.dev/reconcile/controllers/permits"
	"reconcile.dev/reconcile/controllers/profiles"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// A run that waits for a permission which no one gave in time ends. Its node waits for a person, without a process and without
// using up an attempt; the next run continues the session of the agent.

// undecided are the requests of the agent of node i, in a run or its claim, that wait for a person.
func (f *fold) undecided(i int32, run *schemas.Run) []schemas.Permission {
	n := &f.p.Spec.Nodes[i]
	return permits.Undecided(f.Tree, f.Entry, n.Name, run.Agent, run)
}

// asksNow says that the agent of a running node waits for a person; "" if it does not.
func (f *fold) asksNow(i int32) string {
	return f.describeAsked(i, f.undecided(i, &f.recs[i].claim.Run))
}

func (f *fold) describeAsked(i int32, open []schemas.Permission) string {
	if len(open) == 0 {
		return ""
	}
	name := f.p.Spec.Nodes[i].Name
	return fmt.Sprintf("%s asks to %s%s; allow or refuse it: reconcile approve dag/%s %s, reconcile deny dag/%[4]s %[5]s",
		f.agentOf(i), permits.Describe(&open[0]), schemas.AndOthers(len(open)-1), f.p.Name, name)
}

// waitsForPermission reports whether the node waits for the answer to a request of its last run; if so, it has set the state.
func (f *fold) waitsForPermission(i int32) bool {
	run := f.recs[i].notPermitted()
	if run == nil {
		return false
	}
	why := f.describeAsked(i, f.undecided(i, run))
	if why != "" {
		f.set(i, schemas.NodeBlocked, settle.ReasonWaitsForPermission, why)
	}
	return why != ""
}

// notPermitted is the latest run, if it ended because no one gave a permission; else nil.
func (r *nodeRecord) notPermitted() *schemas.Run {
	if r.last == nil || r.last.Outcome != schemas.OutcomeNotPermitted || r.last.Turn == nil {
		return nil
	}
	return r.last
}

// awaits reports whether an answer is about a request of node i that is open.
func (f *fold) awaits(i int32, a *schemas.PermissionAnswer) bool {
	r := &f.recs[i]
	var open []schemas.Permission
	switch {
	case r.running():
		open = permits.Open(&r.claim.Run)
	case r.notPermitted() != nil:
		open = permits.Open(r.last)
	}
	return slices.ContainsFunc(open, func(p schemas.Permission) bool {
		want := permits.Answer(&p, a.For)
		return *want == *a
	})
}

// permissions tells the agent of node i how the requests of its last run were decided.
func (f *fold) permissions(i int32) (out []agentio.Permission) {
	run, n := f.recs[i].notPermitted(), &f.p.Spec.Nodes[i]
	if run == nil {
		return nil
	}
	for _, p := range permits.Open(run) {
		v := permits.Decide(f.Tree, permits.Request{DAG: f.Ref, Node: n.Name, Agent: f.agentOf(i), Asked: &p}, permits.Used(f.Entry, n.Name))
		a := permits.Answer(&p, "")
		out = append(out, agentio.Permission{Request: a.Command + a.Tool, Allowed: v.Allow, Reason: v.Reason})
	}
	return out
}

// permit hands a command what its agent may run without a question, if its profile can.
func (f *fold) permit(i int32, c *settle.Command) {
	if c.Profile == nil || len(c.Profile.Permit) == 0 {
		return
	}
	n := &f.p.Spec.Nodes[i]
	allowed := permits.Allowed(f.Tree, f.Entry, n.Name, f.agentOf(i), f.recs[i].notPermitted())
	runner := f.b.Agent(f.p, f.agentOf(i)).Runner.AsCommand()
	c.Argv, c.PromptArg = profiles.Permit(c.Profile, runner, c.Argv, c.PromptArg, allowed)
	if again := c.Continue; again != nil {
		again.Argv, again.PromptArg = profiles.Permit(c.Profile, runner, again.Argv, again.PromptArg, allowed)
	}
}
