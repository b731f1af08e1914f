package controllers

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// activities is what decisions about agents share over one tree in one round. Each part is made when it is first asked for.
type activities struct {
	world     *World
	tree      *state.Tree
	agentWork map[string]*agentWork
	waits     map[string]wait // by asking agent
}

func activitiesOf(w *World) *activities {
	return Shared(&w.OfRound, func() *activities { return &activities{world: w, tree: w.Tree} })
}

// decideAgent tells what an agent does and did last, from claims, records and questions.
func decideAgent(in In) Out {
	if in.Gone() {
		return Out{}
	}
	st := &schemas.AgentStatus{Common: common(in.Status())}
	old, _ := in.Status().(*schemas.AgentStatus)
	w := activitiesOf(in.World)
	d := w.workOf(in.Name)
	last := d.last
	if h := LastHook(in.Entry); h != nil {
		last = later(last, h.FinishedAt)
	}
	st.LastActivity = schemas.NewTime(in.Now)
	if old != nil {
		st.LastActivity = later(old.LastActivity, last)
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
		brokenJudgement(in, st.AgentActivity.Status).settle(&st.Common, st.ObservedDigest, in.Now)
		return Out{Status: st}
	}
	j.settle(&st.Common, in.Object.Digest, in.Now)
	return Out{Status: st}
}

func agentHistory(in In, d *agentWork, old []schemas.HistoryEntry) []schemas.HistoryEntry {
	past := historyBuilder{old: old}
	for _, r := range d.runs {
		if past.admits(r.FinishedAt) {
			past.add(r.FinishedAt, r.Outcome, r.Owner+": "+runMessage(r))
		}
	}
	for _, r := range hooksOf(in.Entry) {
		past.add(r.FinishedAt, r.Outcome, hookMessage(r))
	}
	return past.entries()
}

// hookMessage is the history's line for a hook.
func hookMessage(r *schemas.Run) string {
	msg := "hook: took up "
	if r.Outcome == schemas.OutcomeDone {
		msg = "hook: ended "
	}
	msg += cmp.Or(r.For, "work")
	if r.Issue > 0 {
		msg += fmt.Sprintf(" on issue %d", r.Issue)
	}
	if r.Message != "" {
		msg += ": " + r.Message
	}
	return msg
}

// activity fills in the fields of agentx-spec 4.3 and says the same in a sentence. Of several things that an agent is at,
// the first of these counts: it answers, a run of it is under way, it waits for an answer, it took work up by a hook, it
// is stuck, is done, is idle.
func (w *activities) activity(e *state.Entry, d *agentWork, st *schemas.AgentStatus) judgement {
	a := &st.AgentActivity
	say := func(status, reason, message string) judgement {
		a.Status = status
		return judgement{phase: status, class: ready, reason: reason, message: message}
	}
	hooks := hooksInForce(e)
	if q := firstOf(d.answers); q != nil {
		spec, id := requestSpec(q), requestsOf(w.world).requestStatus(q).ID
		a.Issue, a.ClarificationID, a.RespondingTo = number(spec.Issue), &id, &spec.From
		return say(schemas.AgentClarify, ReasonClarifying, fmt.Sprintf("answers %s to %s", id, spec.From))
	}
	if n := len(st.Running); n > 0 {
		a.Issue = number(d.issue)
		return say(schemas.AgentWorking, ReasonWorking, fmt.Sprintf("works on %s%s", st.Running[0], more(n-1)))
	}
	if q, status := w.waitsWith(e.Ref); q != nil {
		spec, id := requestSpec(q), status.ID
		a.Issue, a.ClarificationID, a.WaitingOn = number(spec.Issue), &id, &spec.To
		return say(schemas.AgentBlocked, ReasonWaitsForAnswer, waitMessage(spec.To, status))
	}
	if n := len(hooks); n > 0 {
		last := hooks[n-1] // what it took up last is what it is at
		a.Issue = number(last.Issue)
		return say(schemas.AgentWorking, ReasonWorking, "works on "+hookSubject(last)+more(n-1))
	}
	if d.task != nil && w.failedFor(d) {
		a.Issue = number(issueOf(w.tree, d.dag))
		return say(schemas.AgentStuck, ReasonStuck, fmt.Sprintf("failed at %s of %s", d.task.Node, d.dag.Ref))
	}
	if h := LastHook(e); h != nil && h.Outcome == schemas.OutcomeDone {
		a.Issue = number(h.Issue)
		return say(schemas.AgentDone, ReasonDone, "said that its work is done")
	}
	return say(schemas.AgentIdle, ReasonIdle, "idle")
}

// hookSubject names what a hook's record is about: the item that was taken, else the issue.
func hookSubject(r *schemas.Run) string {
	switch {
	case r.For != "":
		return r.For
	case r.Issue > 0:
		return fmt.Sprintf("issue %d", r.Issue)
	}
	return "something outside of reconcile"
}

// number is an issue's number for a field that is null without one.
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
		for _, e := range w.tree.Entries(schemas.ClarificationRequestKind.Name) {
			w.waitFor(e)
		}
	}
	first := w.waits[agent.Name]
	return first.entry, first.status
}

// waitFor takes note of a question that keeps its asker from its work, if it does and is the oldest.
func (w *activities) waitFor(e *state.Entry) {
	if st := requestStatusOf(e); st.ID != "" && !schemas.ClarificationOpen(st.Phase) {
		return // it is not opened again
	}
	st := requestsOf(w.world).requestStatus(e)
	if st.ID == "" || st.Phase == schemas.ClarificationAnswered || !schemas.ClarificationOpen(st.Phase) {
		return
	}
	spec := requestSpec(e)
	if spec == nil || !spec.Blocking {
		return
	}
	first := w.waits[spec.From]
	if first.entry == nil || cmp.Or(st.Created.Compare(first.status.Created.Time), strings.Compare(st.ID, first.status.ID)) < 0 {
		w.waits[spec.From] = wait{e, st}
	}
}

// failedFor reports whether the latest task of an agent failed for good.
func (w *activities) failedFor(d *agentWork) bool {
	st := dagStatus(w.world, d.dag)
	if st == nil {
		return false
	}
	n := st.Nodes[d.task.Node]
	return n.State == schemas.NodeFailed && n.Key == d.task.NodeKey
}

func waitMessage(to string, st *schemas.ClarificationRequestStatus) string {
	if st.Phase == schemas.ClarificationEscalated {
		return "waits for a human to settle " + st.ID
	}
	return "waits for " + to + " to answer " + st.ID
}

// agentAffects adds the open questions of an agent. If an agent appears or disappears, everything is added: any
// question may name it.
func agentAffects(c *Change) {
	if c.Entry == nil || c.Entry.Gone() || !c.Entry.HasStatus() {
		c.AddAll()
		return
	}
	for _, r := range c.Tree().ReferrersOf(c.Ref, schemas.ClarificationRequestKind.Name) {
		if schemas.ClarificationOpen(requestStatusOf(c.Tree().Entry(r)).Phase) {
			c.AddWithReaders(r)
		}
	}
}

// agentWork is the activity of one agent, from claims and records.
type agentWork struct {
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
func (w *activities) workOf(agent string) *agentWork {
	if w.agentWork == nil {
		w.agentWork = map[string]*agentWork{}
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
	return new(agentWork)
}

func (w *activities) gather(e *state.Entry) {
	for i := range e.Claims {
		if c := &e.Claims[i]; c.Agent != "" && !c.StartedAt.IsZero() {
			d := w.workFor(c.Agent)
			if len(d.claims) == 0 || c.StartedAt.Before(d.claims[0].StartedAt.Time) {
				d.issue = issueOf(w.tree, e)
			}
			d.claims = append(d.claims, c)
			d.last = later(d.last, c.StartedAt)
			if e.Kind == schemas.ClarificationRequestKind.Name {
				d.answers = append(d.answers, e)
			}
		}
	}
	if !e.RunsHave(state.OfAgent) {
		return
	}
	for _, r := range e.Runs() {
		if r.Agent != "" {
			d := w.workFor(r.Agent)
			d.runs = append(d.runs, r)
			d.last = later(d.last, r.FinishedAt)
			if e.Kind == schemas.DAGKind.Name && (d.task == nil || r.FinishedAt.After(d.task.FinishedAt.Time)) {
				d.task, d.dag = r, e
			}
		}
	}
}

func (w *activities) workFor(agent string) *agentWork {
	d := w.agentWork[agent]
	if d == nil {
		d = new(agentWork)
		w.agentWork[agent] = d
	}
	return d
}
