// Package agents decides Agents and Workflows: what an agent does and did last, by claims, records, questions and hooks, and the
// order of the steps of a workflow.
package agents

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/budgets"
	"reconcile.dev/reconcile/controllers/sessions"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// activities is what decisions about agents share over one tree in one round. Each part is made when it is first asked for.
type activities struct {
	world     *settle.World
	tree      *state.Tree
	agentWork map[string]*work
	waits     map[string]wait // by asking agent
}

func activitiesOf(w *settle.World) *activities {
	return settle.Shared(&w.OfRound, func() *activities { return &activities{world: w, tree: w.Tree} })
}

// decide tells what an agent does and did last, from claims, records and questions.
func decide(in settle.In) settle.Out {
	if in.Gone() {
		return settle.Out{}
	}
	st := &schemas.AgentStatus{Common: settle.Common(in.Status())}
	old, _ := in.Status().(*schemas.AgentStatus)
	w := activitiesOf(in.World)
	d := w.workOf(in.Name)
	last := d.last
	if h := LastHook(in.Entry); h != nil {
		last = schemas.Later(last, h.FinishedAt)
	}
	st.LastActivity = schemas.NewTime(in.Now)
	if old != nil {
		st.LastActivity = schemas.Later(old.LastActivity, last)
	} else if !last.IsZero() {
		st.LastActivity = last
	}
	for _, c := range d.claims {
		st.Running = append(st.Running, c.Key)
	}
	slices.Sort(st.Running)
	j := w.activity(in.Entry, d, st)
	st.History = agentHistory(in, d, st.History)
	if in.Broken() {
		settle.JudgeBroken(in, st.AgentActivity.Status).Settle(&st.Common, st.ObservedDigest, in.Now)
		return settle.Out{Status: st}
	}
	h := health(in)
	unlessAiling(j, h).Settle(&st.Common, in.Object.Digest, in.Now)
	budgets.Warn(in, &st.Common)
	if h != nil {
		former := settle.Common(in.Status())
		settle.Health(&st.Common, &former, h.Status, h.Reason, h.Message, in.Now)
	}
	return settle.Out{Status: st}
}

func agentHistory(in settle.In, d *work, old []schemas.HistoryEntry) []schemas.HistoryEntry {
	past := settle.History{Old: old}
	for _, r := range d.runs {
		past.AddRun(r.Owner+": ", r)
	}
	for _, r := range HooksOf(in.Entry) {
		past.Add(r.FinishedAt, r.Outcome, hookMessage(r))
	}
	return past.Entries()
}

// activity fills in the fields of agentx-spec 4.3 and says the same in a sentence. Of several things that an agent is at,
// the first of these counts: it answers, a run of it is under way, it waits for an answer, it took work up by a hook, it
// is stuck, is done, is idle.
func (w *activities) activity(e *state.Entry, d *work, st *schemas.AgentStatus) settle.Judgement {
	a := &st.AgentActivity
	say := func(status, reason, message string) settle.Judgement {
		a.Status = status
		return settle.Judgement{Phase: status, Class: settle.ClassReady, Reason: reason, Message: message}
	}
	hooks := HooksInForce(e)
	if q := firstOf(d.answers); q != nil {
		spec, id := state.SpecOf[*schemas.ClarificationRequestSpec](q), settle.StatusAs[schemas.ClarificationRequestStatus](w.world, q).ID
		a.Issue, a.ClarificationID, a.RespondingTo = number(spec.Issue), &id, &spec.From
		return say(schemas.AgentClarify, settle.ReasonClarifying, fmt.Sprintf("answers %s to %s", id, spec.From))
	}
	if c := asking(d.claims); c != nil {
		a.Issue = number(d.issue)
		return say(schemas.AgentWorking, settle.ReasonWaitsForPermission, fmt.Sprintf("waits for a permission of %s/%s", c.Owner, c.Node))
	}
	if n := len(st.Running); n > 0 {
		a.Issue = number(d.issue)
		return say(schemas.AgentWorking, settle.ReasonWorking, fmt.Sprintf("works on %s%s", st.Running[0], schemas.AndOthers(n-1)))
	}
	if q, status := w.waitsWith(e.Ref); q != nil {
		spec, id := state.SpecOf[*schemas.ClarificationRequestSpec](q), status.ID
		a.Issue, a.ClarificationID, a.WaitingOn = number(spec.Issue), &id, &spec.To
		return say(schemas.AgentBlocked, settle.ReasonWaitsForAnswer, waitMessage(spec.To, status))
	}
	if n := len(hooks); n > 0 {
		last := hooks[n-1] // what it took up last is what it is at
		a.Issue = number(last.Issue)
		return say(schemas.AgentWorking, settle.ReasonWorking, "works on "+hookSubject(last)+schemas.AndOthers(n-1))
	}
	if d.task != nil && w.failedFor(d) {
		a.Issue = number(sessions.IssueOf(w.tree, d.dag))
		return say(schemas.AgentStuck, settle.ReasonStuck, fmt.Sprintf("failed at %s of %s", d.task.Node, d.dag.Ref))
	}
	if h := LastHook(e); h != nil && h.Outcome == schemas.OutcomeDone {
		a.Issue = number(h.Issue)
		return say(schemas.AgentDone, settle.ReasonDone, "said that its work is done")
	}
	return say(schemas.AgentIdle, settle.ReasonIdle, "idle")
}

// asking is the first of the claims in which the agent waits for a permission; nil for none.
func asking(claims []*state.Claim) *state.Claim {
	for _, c := range claims {
		if c.Turn != nil && slices.ContainsFunc(c.Turn.Permissions, func(p schemas.Permission) bool { return p.Decision == schemas.PermissionWaiting }) {
			return c
		}
	}
	return nil
}

// number is the issue of an agent for its status, in which it is null without one.
func number(issue int) *int {
	if issue == 0 {
		return nil
	}
	return &issue
}

// firstOf returns the first of some requests that can be read, or nil.
func firstOf(requests []*state.Entry) *state.Entry {
	for _, e := range requests {
		if e.Object != nil {
			return e
		}
	}
	return nil
}

// wait is a question that keeps an agent from its work.
type wait struct {
	entry  *state.Entry
	status *schemas.ClarificationRequestStatus
}

// waitsWith returns the oldest blocking question of an agent that is neither answered nor closed, or nil.
func (w *activities) waitsWith(agent schemas.Ref) (*state.Entry, *schemas.ClarificationRequestStatus) {
	if w.waits == nil {
		w.waits = map[string]wait{}
		for _, e := range w.tree.Active(schemas.ClarificationRequestKind.Name) { // nobody waits for one that is dormant
			w.waitFor(e)
		}
	}
	first := w.waits[agent.Name]
	return first.entry, first.status
}

// waitFor takes note of a question that keeps its asker from its work, if it does and is the oldest.
func (w *activities) waitFor(e *state.Entry) {
	if b := e.Brief(); b.ID != "" && !schemas.ClarificationOpen(b.Phase) {
		return // it is not opened again
	}
	if b := w.world.Brief(e); b == nil || b.ID == "" || b.Phase == schemas.ClarificationAnswered || !schemas.ClarificationOpen(b.Phase) {
		return
	}
	spec := state.SpecOf[*schemas.ClarificationRequestSpec](e)
	if spec == nil || !spec.Blocking {
		return
	}
	st, first := settle.StatusAs[schemas.ClarificationRequestStatus](w.world, e), w.waits[spec.From]
	if first.entry == nil || cmp.Or(st.Created.Compare(first.status.Created.Time), strings.Compare(st.ID, first.status.ID)) < 0 {
		w.waits[spec.From] = wait{e, st}
	}
}

// failedFor reports whether the latest task of an agent failed for good.
func (w *activities) failedFor(d *work) bool {
	st := settle.StatusAs[schemas.DAGStatus](w.world, d.dag)
	if st == nil {
		return false
	}
	n := st.Nodes.Of(d.task.Node)
	return n.State == schemas.NodeFailed && n.Key == d.task.NodeKey
}

func waitMessage(to string, st *schemas.ClarificationRequestStatus) string {
	if st.Phase == schemas.ClarificationEscalated {
		return "waits for a human to settle " + st.ID
	}
	return "waits for " + to + " to answer " + st.ID
}

// work is the activity of one agent, from claims and records.
type work struct {
	claims []*state.Claim
	runs   []*schemas.Run
	last   schemas.Time // the latest start or end
	issue  int          // of the oldest claim
	// task is the latest run of a node, and where it ran; answers are the questions that the agent is being asked.
	task    *schemas.Run
	dag     *state.Entry
	answers []*state.Entry
}

// workOf returns what an agent does and did; never nil.
func (w *activities) workOf(agent string) *work {
	if w.agentWork == nil {
		w.agentWork = map[string]*work{}
		for _, k := range w.world.Table() {
			if k.Performs {
				for _, e := range w.tree.Active(k.Name) {
					w.gather(e)
				}
			}
		}
	}
	if d := w.agentWork[agent]; d != nil {
		return d
	}
	return new(work)
}

func (w *activities) gather(e *state.Entry) {
	for i := range e.Claims {
		if c := &e.Claims[i]; c.Agent != "" && !c.StartedAt.IsZero() {
			d := w.workFor(c.Agent)
			if len(d.claims) == 0 || c.StartedAt.Before(d.claims[0].StartedAt.Time) {
				d.issue = sessions.IssueOf(w.tree, e)
			}
			d.claims = append(d.claims, c)
			d.last = schemas.Later(d.last, c.StartedAt)
			if e.Kind == schemas.ClarificationRequestKind.Name {
				d.answers = append(d.answers, e)
			}
		}
	}
	if e.Gone() || !e.RunsHave(state.OfAgent) { // the records of what was removed are about to be removed, too
		return
	}
	for _, r := range e.Runs() {
		if r.Agent != "" {
			d := w.workFor(r.Agent)
			d.runs = append(d.runs, r)
			d.last = schemas.Later(d.last, r.FinishedAt)
			if e.Kind == schemas.DAGKind.Name && (d.task == nil || r.FinishedAt.After(d.task.FinishedAt.Time)) {
				d.task, d.dag = r, e
			}
		}
	}
}

func (w *activities) workFor(agent string) *work {
	d := w.agentWork[agent]
	if d == nil {
		d = new(work)
		w.agentWork[agent] = d
	}
	return d
}
