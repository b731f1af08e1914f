package dags

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"reconcile.dev/reconcile/controllers/admission"
	"reconcile.dev/reconcile/controllers/agentio"
	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/breaker"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/dags/plan"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/controllers/spans"
	"reconcile.dev/reconcile/controllers/tokens"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// effects lists what is wanted, by key, with notices before the nodes. Names sort as keys do but for those with a dash, which is also
// what follows a name in a key.
func (f *fold) effects(out []settle.Effect) []settle.Effect {
	if f.goesOn != nil {
		f.wants = f.goesOn.effects
	} else {
		f.wants = make([]*settle.Effect, len(f.next))
		for i := range f.wants {
			f.wants[i] = f.wanted(int32(i))
		}
	}
	for _, i := range f.p.ByName {
		if e := f.wants[i]; e != nil {
			out = append(out, *e)
		}
	}
	byKey := func(a, b settle.Effect) int { return strings.Compare(a.Key, b.Key) }
	if !slices.IsSortedFunc(out, byKey) {
		slices.SortFunc(out, byKey)
	}
	return out
}

// wanted is the effect that node i wants now; nil for none.
func (f *fold) wanted(i int32) *settle.Effect {
	var e settle.Effect
	switch {
	case f.recs[i].land.wanted:
		e = f.landEffect(i)
	case f.recs[i].verify.wanted:
		e = f.verifyEffect(i)
	case f.want[i]:
		e = f.effect(i)
	default:
		return nil
	}
	return &e
}

func (f *fold) effect(i int32) settle.Effect {
	e := f.b.Effect(f.p, i, f.agentOf(i))
	e.QueuedAt, e.Instead = f.next[i].QueuedAt, f.instead(i)
	r := &f.recs[i]
	if r.claim != nil {
		e.Key, e.Seq, e.Tell = r.claim.Key, r.claim.Seq, f.tell(i)
		return e
	}
	if r.former != nil {
		e.Key, e.NodeKey, e.Seq = r.former.Key, r.former.NodeKey, r.former.Seq
		return e
	}
	c := f.b.Command(f.p, i, e.Agent)
	f.fillTexts(i, &c)
	e.Seq = r.seq + 1
	for _, q := range r.questions {
		e.Seq = max(e.Seq, q.Seq+1) // a run that wrote a request, and left no record, is another one
	}
	e.Seq = max(e.Seq, f.seqAfterHelp(i))
	e.Key = effectKey(f.p.Name, e.Node, e.NodeKey, e.Seq)
	e.Allowances, e.Exclusive = f.b.Allowances(f.In, f.p, i, e.Agent), f.exclusive()
	if !f.cleans(i) {
		c.Deadline = spans.Sooner(f.deadline(), f.callDeadline(i))
	}
	c.Needs = f.results(i)
	if round := f.b.Round(i); round > 0 {
		c.Env = withRound(c.Env, round)
	}
	c.Expects = f.expects(i)
	if r.again {
		c.Again = f.Missing[e.Node].Files
	}
	if attempt := r.attempts() + 1; attempt > 1 {
		c.Env = withAttempt(c.Env, attempt)
	}
	if f.choices[i].probe {
		e.Groups = append(slices.Clip(e.Groups), breaker.ProbeGroup(e.Agent))
	}
	if answers := f.approvalAnswers(i); answers != "" {
		c.Env = slices.Sorted(slices.Values(append(slices.Clone(c.Env), approvalsVar+answers)))
	}
	if e.Agent != "" {
		c.Stdin = f.stdin(i, c.Needs, r.attempts()+1)
		c.Recall = f.recall(i)
		if c.Workspace = f.workspace(i); c.Workspace != nil {
			c.Brings, c.Workspace.Tests = f.brings(i, c.Expects), f.givenTests(i)
		}
		c.Sandbox = agents.Sandbox(f.b.Agent(f.p, e.Agent), c.Profile, c.Workspace)
		f.goOn(i, &c)
	}
	e.Task = &c
	if agent := f.b.Agent(f.p, e.Agent); agent != nil {
		e.Task = agents.Task(agent, &c, f.continues(i))
	}
	return e
}

// goOn adds to a command of node i what follows from the runs before it and from people.
func (f *fold) goOn(i int32, c *settle.Command) {
	r := &f.recs[i]
	c.Context = f.context(i)
	_, c.Messages = f.texts(i)
	agents.Resume(c, f.continues(i))
	f.permit(i, c)
	c.Continues = r.last != nil && (r.handoffs > 0 || f.opened(i) != nil || len(f.checkpoints(i)) > 0)
	if c.Workspace != nil && f.opened(i) != nil { // it has its workspace, and an architect may have changed other nodes in the file
		c.Workspace.Spec, c.Workspace.Inputs = "", nil
	}
	if c.Workspace == nil {
		return
	}
	run := r.kept
	if r.reopened != nil && r.last == r.reopened {
		run = r.reopened
	}
	left := r.verify.change
	if run != nil {
		c.Workspace.Continues = run.Key
		left = run.Workspace
	}
	if (run != nil || r.verify.sentBack != nil) && left != nil && left.Commit != "" {
		c.Workspace.From = &settle.Commit{Base: left.Base, Commit: left.Commit}
	}
}

func withAttempt(env []string, attempt int) []string {
	env = slices.Clone(env)
	for i, kv := range env {
		if strings.HasPrefix(kv, plan.AttemptVar) {
			env[i] = plan.AttemptVar + strconv.Itoa(attempt)
		}
	}
	return env
}

// stdin is what an agent's program reads.
func (f *fold) stdin(i int32, needs map[string]settle.Need, attempt int) string {
	agent := f.b.Agent(f.p, f.agentOf(i))
	if agent == nil || agent.Runner.AsCommand() == nil {
		return ""
	}
	return f.work(i, agent, needs, attempt).Stdin(agent.Runner.AsCommand().Stdin)
}

// work is the task of node i in the form for its agent.
func (f *fold) work(i int32, agent *schemas.AgentSpec, needs map[string]settle.Need, attempt int) *agentio.Work {
	n, name := &f.p.Spec.Nodes[i], f.agentOf(i)
	w := f.workFor(i, name, agent, needs, attempt)
	w.Schema, w.Clarifications, w.Refusals, w.Outputs = n.Outputs.Schema, append(f.answers(i), f.help(i)...), f.refusals(i), n.Outputs.Paths()
	w.MayAsk, w.Helpers = clarify.NewScope(name, agent, n.Clarify).Allowed(), agents.Helpers(agent)
	if c := agent.Runner.AsCommand(); c != nil {
		w.Report = c.Output
	}
	w.Permissions = f.permissions(i)
	w.Round, w.Feedback = f.round(i), f.feedback(i)
	if given := f.recs[i].verify.given; len(given) > 0 {
		last := given[len(given)-1]
		w.Constraints = append(w.Constraints, fmt.Sprintf("The tests in %s are of %s, who alone changes them: what you change there is left out, and shown to a person.",
			schemas.Shorten(last.Workspace.Files, 10), last.Agent))
	}
	if run := f.recs[i].unsuccessful(); run != nil {
		w.Failure = &agentio.Failure{Reason: cmp.Or(run.Message, "the run ended "+run.Outcome), Output: run.Output}
	}
	w.Handoff = f.handoffTold(i)
	w.Messages, _ = f.texts(i)
	most := agent.PromptTokens
	if w.Checkpoints = f.checkpoints(i); len(w.Checkpoints) > 0 || w.Handoff != nil && w.Handoff.State != nil {
		most = min(most, agent.ContextWindow*agent.MemoryOf().Target/100)
	}
	w.Fit(most, tokens.Count)
	return w
}

// handoffTold is what the next conversation about node i is told of the one before; nil for the first, and where one goes on.
func (f *fold) handoffTold(i int32) *agentio.Handoff {
	x := f.opened(i)
	if x == nil || f.continues(i) != nil {
		if run := f.recs[i].handoff; run != nil && run.Reported != nil {
			return &agentio.Handoff{AgentReport: run.Reported}
		}
		return nil
	}
	h := &agentio.Handoff{Pipeline: x.Index, Reason: x.Reason, Instructions: x.Instructions, Architect: x.Architect}
	if x.Phase == schemas.HandoffFailed {
		h.Pipeline, h.Failed = x.Index-1, x.Message
	}
	if run := f.recs[i].handoff; run != nil && run.Key == x.Run {
		h.AgentReport = run.Reported
	}
	for _, c := range f.Tree.Checkpoints() {
		if c.Hands(x) && c.NodeKey == f.b.Keys[i] {
			h.State = &c.Handoff.TaskState
		}
	}
	if h.State == nil {
		s := f.handoffState(i, x)
		h.State = &s
	}
	return h
}

// recall selects the memory for the agent of a node.
func (f *fold) recall(i int32) *settle.Recall {
	if !f.Tree.Settings().Memory.On() {
		return nil
	}
	return &settle.Recall{Agent: f.agentOf(i), Issue: f.p.Issue(f.b.SessionSpec()), Context: f.prompt(i)}
}

// frozen lists what runs as effects, for a DAG that cannot be decided: nothing new starts, nothing is cancelled. What
// runs counts against its groups, whose limits are not known here and not needed: only a new claim asks for them.
func frozen(t *state.Tree, e *state.Entry, session string) []settle.Effect {
	var out []settle.Effect
	for i := range e.Claims {
		c := &e.Claims[i]
		if c.StartedAt.IsZero() {
			continue // what only waits for a place does not start any more
		}
		out = append(out, settle.Effect{Key: c.Key, Owner: e.Ref, Session: session, Node: c.Node, NodeKey: c.NodeKey, Seq: c.Seq,
			Agent: c.Agent, Groups: admission.GroupsOf(t, e, session, c)})
	}
	return out
}
