package dags

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/actions"
	"reconcile.dev/reconcile/controllers/agentio"
	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/clarifications"
	"reconcile.dev/reconcile/controllers/planchanges"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/secrets"
	"reconcile.dev/reconcile/schemas/shorten"
)

// The work of an engineer is handed over when its context is full, when it asks for that, or when a person does: the conversation ends,
// and a new one goes on in the same workspace, with what records tell of the old one. All hand-offs of a node are part of its status. What
// opens one is the record of the run that ended, so that a process that is killed leaves either the old pipeline or the new one. Where
// there is an architect, its word is asked for; without it the work goes on all the same.

// mostHandoffs bounds how many runs of a node may hand the rest of the task off without a person's word.
const mostHandoffs = 12

// handsOver reports whether the agent of node i hands its work over. Agents of other roles go on from checkpoints.
func (f *fold) handsOver(i int32) bool {
	a := f.b.Agent(f.p, f.agentOf(i))
	return a != nil && a.Runner.AsCommand() != nil && a.MemoryOf().Summary == schemas.SummaryHandoff
}

// handoffsNow are the hand-offs of node i under its present key as they were decided before, with what actions have changed since; nil for
// none.
func (f *fold) handoffsNow(i int32) *schemas.Handoffs {
	if h, ok := f.handoffs[i]; ok {
		return h
	}
	if was := f.was[i]; was.Key == f.b.Keys[i] {
		return was.Handoff
	}
	return nil
}

// stoppedHandoffs says who does not want node i to hand its work over; nil for nobody.
func (f *fold) stoppedHandoffs(i int32) *schemas.HandoffWord {
	if h := f.handoffsNow(i); h != nil {
		return h.Stopped
	}
	return nil
}

// handedOver are the hand-offs of node i by its records; nil for none.
func (f *fold) handedOver(i int32) *schemas.Handoffs {
	r, was := &f.recs[i], f.handoffsNow(i)
	if was == nil && (len(r.handed) == 0 || !f.handsOver(i)) {
		return nil
	}
	h := new(schemas.Handoffs)
	if was != nil {
		*h = *was
		h.Chain = slices.Clone(was.Chain)
	}
	for _, run := range r.handed {
		late := was != nil && run != r.last // it ended while hand-offs were stopped
		if h.Stopped == nil && !late && h.Made() < mostHandoffs && f.handsOver(i) && h.Of(run.Key) == nil && (h.Asked == nil || run != r.last) {
			h.Chain = append(h.Chain, f.requested(i, run, nil))
		}
	}
	if h.Asked != nil && !r.running() && r.last != nil {
		if old := h.Of(r.last.Key); old == nil || old.Phase == schemas.HandoffCancelled {
			h.Chain = append(h.Chain, f.requested(i, r.last, h.Asked))
		}
		h.Asked = nil
	}
	h.Index = 0
	for k := range h.Chain {
		x := &h.Chain[k]
		if x.Index = h.Index + 1; x.Open() {
			f.advance(i, x)
		}
		if x.Phase == schemas.HandoffCompleted {
			h.Index++
		}
	}
	return h
}

// handoffsMade counts the runs of node i that handed the rest of the task off, but for what a person asked for or stopped.
func (f *fold) handoffsMade(i int32) int {
	r, h, n := &f.recs[i], f.next[i].Handoff, 0
	if h == nil {
		return r.handoffs
	}
	for _, run := range r.handed { // more than the chain has
		if h.Stopped == nil && h.Of(run.Key) == nil && (run == r.last || f.handoffsNow(i) == nil) {
			n++
		}
	}
	return n + h.Made()
}

// requested is the hand-off of the conversation of a run of node i, which by asks for; nil for its record.
func (f *fold) requested(i int32, run *schemas.Run, by *schemas.HandoffWord) schemas.Handoff {
	x := schemas.Handoff{Phase: schemas.HandoffRequested, At: run.FinishedAt, Run: run.Key, Agent: run.Agent, ContextUsage: f.usageOf(run)}
	switch {
	case by != nil:
		x.Action, x.At, x.Reason = by.Action, schemas.Later(by.At, run.FinishedAt), by.Said()
	case run.Outcome == schemas.OutcomeHandedOff:
		x.Reason = "the agent asks for it"
		if run.Reported != nil {
			x.Reason = strings.TrimSuffix(x.Reason+": "+visible(run.Reported.Summary), ": ")
		}
	default:
		x.Reason = fmt.Sprintf("%.0f %% of its context are used", x.ContextUsage*100)
	}
	x.Reason = shorten.Text(x.Reason, 500)
	if by == nil && f.wentOn(i, run.Key) || f.p.Spec.Answers != "" { // a record of before hand-offs had a status, or an architect's own work
		return x
	}
	if x.Architect, _ = planchanges.Architect(f.Tree, run.Agent); x.Architect != "" {
		n := 0
		if h := f.handoffsNow(i); h != nil {
			n = len(h.Chain)
		}
		x.PlanChange = clarifications.NameFor(f.p.Name+"-handoff", fmt.Sprintf("%s %d", run.Key, n))
	}
	return x
}

// visible is a text in one line that a spec may have: without secrets, and without characters that are not seen by themselves.
func visible(text string) string { return oneLine(secrets.Redact(agentio.Plain(text))) }

// wentOn reports whether node i has worked on after a run.
func (f *fold) wentOn(i int32, run string) bool {
	_, seq := clarifications.SplitSeq(run)
	r := &f.recs[i]
	return r.seq > seq || r.running() && r.claim.Seq > seq
}

// advance finds what became of a hand-off of node i that is open.
func (f *fold) advance(i int32, x *schemas.Handoff) {
	end := func(phase string, at schemas.Time, message string) {
		x.Phase, x.EndedAt, x.Message = phase, at, message
	}
	if x.PlanChange == "" || f.wentOn(i, x.Run) {
		end(schemas.HandoffCompleted, x.At, "")
		return
	}
	limit := schemas.NewTime(x.At.Add(planchanges.HandoffLimit))
	due := !f.Now.Before(limit.Time) || f.Now.Before(x.At.Time) // a clock that was wrong is not waited for
	ref := schemas.PlanChangeKind.Ref(x.PlanChange)
	x.Message = fmt.Sprintf("agent/%s is to be asked in %s", x.Architect, ref)
	e := f.Tree.Entry(ref)
	spec := planchanges.Spec(e)
	var st *schemas.PlanChangeStatus
	if spec != nil && planchanges.IsHandoff(spec, f.p.Name, f.p.Spec.Nodes[i].Name, x) {
		st = settle.StatusAs[schemas.PlanChangeStatus](f.World, e)
	} else if e != nil && !e.Gone() {
		x.Message = fmt.Sprintf("%s is in the way of the request to agent/%s", ref, x.Architect)
	}
	if st != nil {
		if c := st.Condition(schemas.Ready); c != nil {
			x.Message = c.Message
		}
		if a := st.Answer; a != nil && a.Accept && st.Phase != schemas.PlanRefused {
			x.Phase, x.Architect, x.Instructions = schemas.HandoffAccepted, cmp.Or(a.By, x.Architect), a.Instructions
		}
		switch {
		case st.Phase == schemas.PlanApplied, x.Phase == schemas.HandoffAccepted && due:
			end(schemas.HandoffCompleted, st.Answer.At, x.Message)
			return
		case st.Phase == schemas.PlanRefused:
			at := limit
			if c := st.Condition(schemas.Ready); c != nil && c.LastTransitionTime.Before(limit.Time) {
				at = c.LastTransitionTime
			}
			end(schemas.HandoffFailed, at, x.Message)
			return
		}
	}
	if due {
		end(schemas.HandoffFailed, limit, fmt.Sprintf("no word of agent/%s within %s: %s", x.Architect, planchanges.HandoffLimit, x.Message))
		return
	}
	f.wake(limit.Time)
}

// handingOff reports whether node i waits for what becomes of its hand-off, or for a person who stopped it; if so, it has set the state.
func (f *fold) handingOff(i int32) bool {
	h, r := f.next[i].Handoff, &f.recs[i]
	if x := h.Last(); x != nil && x.Open() {
		f.set(i, schemas.NodeQueued, settle.ReasonHandingOff, fmt.Sprintf("its work is handed over to pipeline %d (%s): %s; until %s at most", x.Index, x.Reason,
			x.Message, x.At.Add(planchanges.HandoffLimit).UTC().Format("15:04:05Z")))
		return true
	}
	if h != nil && h.Stopped != nil && r.last != nil && r.last.Outcome == schemas.OutcomeHandedOff && h.Of(r.last.Key) == nil {
		f.set(i, schemas.NodeBlocked, settle.ReasonHandoffStopped, fmt.Sprintf("its agent asks to hand its work over; reconcile task %s:%s %s "+
			"lets it. Hand-offs were stopped by %s", f.Ref, f.p.Spec.Nodes[i].Name, schemas.VerbHandoff, h.Stopped.Said()))
		return true
	}
	return false
}

// closeHandoff ends what is open of a node that has ended.
func (f *fold) closeHandoff(i int32) {
	if x := f.next[i].Handoff.Last(); x != nil && x.Open() && readiness.NodeEnded(f.next[i]) {
		x.Phase, x.EndedAt, x.Message = schemas.HandoffCancelled, schemas.Later(x.At, f.next[i].FinishedAt), "the task has ended"
	}
}

// opened is the latest hand-off of node i that ended a conversation; nil for none.
func (f *fold) opened(i int32) *schemas.Handoff {
	h := f.next[i].Handoff
	if h == nil {
		return nil
	}
	for k := len(h.Chain) - 1; k >= 0; k-- {
		if x := &h.Chain[k]; x.Phase != schemas.HandoffCancelled {
			return x
		}
	}
	return nil
}

// endsSession reports whether a hand-off ended the conversation of a run of node i.
func (f *fold) endsSession(i int32, run *schemas.Run) bool {
	x := f.opened(i)
	if x == nil {
		return false
	}
	_, seq := clarifications.SplitSeq(x.Run)
	return run.Seq <= seq
}

// takeHandoff takes the word of a person about the hand-offs of node i, or says in done why it is refused.
func (f *fold) takeHandoff(i int32, a actions.Pending, done *schemas.AppliedAction) bool {
	id := a.Identity(f.World)
	if id.Who != "" {
		done.By, done.Proof = id.Who, id.Proof
	}
	node := f.p.Spec.Nodes[i].Name
	begun := f.recs[i].last != nil || f.recs[i].running()
	switch {
	case agents.Acts(f.Tree, id):
		done.Refused = "only people do that, and " + id.Who + " is an agent"
	case !f.hears(node):
		done.Refused = node + " has ended, or no program works on it: there is nothing to hand over"
	case !f.handsOver(i):
		done.Refused = fmt.Sprintf("agent/%s hands nothing over: its conversations go on from checkpoints", f.agentOf(i))
	case !begun && a.Spec.Verb == schemas.VerbHandoff && f.stoppedHandoffs(i) == nil:
		done.Refused = node + " has not begun: there is nothing to hand over"
	}
	if done.Refused != "" {
		return false
	}
	h := new(schemas.Handoffs)
	if was := f.next[i].Handoff; was != nil {
		*h = *was
		h.Chain = slices.Clone(was.Chain)
	}
	word := &schemas.HandoffWord{Action: a.Entry.Name, By: schemas.Acting(done.By, done.Proof), Text: shorten.Text(visible(cmp.Or(a.Spec.Text, a.Spec.Reason)), 200), At: done.At}
	if a.Spec.Verb == schemas.VerbHandoff {
		if h.Stopped, h.Asked = nil, nil; begun { // else it lets hand-offs again
			h.Asked = word
		}
	} else {
		if h.Stopped, h.Asked = word, nil; h.Last() != nil && h.Last().Open() {
			x := h.Last()
			x.Phase, x.EndedAt, x.Message = schemas.HandoffCancelled, done.At, "stopped by "+word.Said()
		}
	}
	if f.handoffs == nil {
		f.handoffs = map[int32]*schemas.Handoffs{}
	}
	f.handoffs[i] = h
	return true
}

// HandoffLines are the hand-offs of a node, a line each, oldest first.
func HandoffLines(h *schemas.Handoffs) (out []string) {
	if h == nil {
		return nil
	}
	for k := range h.Chain {
		x := &h.Chain[k]
		at := x.At
		if !x.Open() {
			at = x.EndedAt
		}
		line := fmt.Sprintf("%d %s at %s: %s", x.Index, x.Phase, at.UTC().Format("2006-01-02T15:04:05Z"), x.Reason)
		if x.ContextUsage > 0 && !strings.Contains(x.Reason, "% of its context") {
			line += fmt.Sprintf(" (%.0f %% of its context used)", x.ContextUsage*100)
		}
		for _, more := range []string{x.Message, x.Instructions} {
			if more = oneLine(more); more != "" && !strings.Contains(line, more) {
				line += "; " + more
			}
		}
		out = append(out, line)
	}
	if h.Stopped != nil {
		out = append(out, "stopped by "+h.Stopped.Said())
	}
	return out
}
