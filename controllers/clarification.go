package controllers

import (
	"cmp"
	"fmt"

	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// decideRequest follows a question through its life: see package clarify. A request that was refused has no phase.
func decideRequest(in In) Out {
	if in.Gone() {
		return Out{}
	}
	w := requestsOf(in.World)
	f := w.provisional(in.Entry)
	if f.undecided != nil {
		return keepRequest(in, f)
	}
	v := f.verdict
	if order := w.orders()[in.Name]; order != nil {
		m := f.input
		m.Order = order
		v = m.Decide()
	}
	delete(w.provisionals, in.Name) // nobody else asks for it, and a tree may have thousands
	st := *v.Status
	if len(st.Refused) == 0 {
		st.Refused = nil // as a file has it
	}
	st.Common = common(in.Status())
	st.Phase = v.Status.Phase
	past := historyBuilder{old: st.History}
	recall(&past, &st)
	st.History = past.entries()
	judgeRequest(&st, &f.input, v).settle(&st.Common, f.digest, in.Now)
	out := Out{Status: &st, Again: v.Again, Await: v.Await}
	if v.Ask != nil {
		out.Effects = []Effect{w.askEffect(in.Entry, &f.input, &st, v.Ask)}
	}
	return out
}

// keepRequest keeps the status of a request that cannot be decided, and lets its runs continue.
func keepRequest(in In, f *provisional) Out {
	st := *requestStatusOf(in.Entry)
	if st.History == nil {
		st.History = []schemas.HistoryEntry{}
	}
	f.undecided.settle(&st.Common, f.digest, in.Now)
	out := Out{Status: &st}
	for i := range in.Claims {
		if c := &in.Claims[i]; !c.StartedAt.IsZero() {
			out.Effects = append(out.Effects, Effect{Key: c.Key, Owner: in.Ref, Node: c.Node, NodeKey: c.NodeKey, Seq: c.Seq,
				Agent: c.Agent, Groups: []Group{{Name: tasksGroup}, {Name: agentGroup + c.Agent}}})
		}
	}
	return out
}

// requestClass maps the phase of a request to its class and reason.
var requestClass = map[string]struct {
	class  class
	reason string
}{
	schemas.ClarificationPending:   {waiting, ReasonPending},
	schemas.ClarificationStale:     {waiting, ReasonStale},
	schemas.ClarificationAnswered:  {ready, ReasonAnswered},
	schemas.ClarificationResolved:  {ready, ReasonResolved},
	schemas.ClarificationAbandoned: {ready, ReasonAbandoned},
	schemas.ClarificationEscalated: {waiting, ReasonEscalated},
}

// judgeRequest finds the conditions. Where a program is asked, or is asked again soon, reconcile is at it; else it is a
// person's turn.
func judgeRequest(st *schemas.ClarificationRequestStatus, m *clarify.Input, v clarify.Decision) judgement {
	row := requestClass[st.Phase]
	j := judgement{phase: st.Phase, class: row.class, reason: row.reason, since: readySince(st).Time,
		message: cmp.Or(v.Message, fmt.Sprintf("%s: %s asks %s", st.ID, m.Spec.From, m.Spec.To))}
	if j.class == waiting && (v.Ask != nil || v.Await) {
		j.class = working
	}
	return j
}

// readySince is when the thread last turned from an open question to an answered one, or back; zero where something else
// than the thread decides.
func readySince(st *schemas.ClarificationRequestStatus) (since schemas.Time) {
	if st.Phase == schemas.ClarificationAbandoned {
		return schemas.Time{}
	}
	was := true
	for i := range st.Thread {
		t := &st.Thread[i]
		if _, known := turnWords[t.Type]; !known {
			continue // another program wrote what means nothing here
		}
		is := t.Type == schemas.TurnAnswer || t.Type == schemas.TurnResolution
		if since.IsZero() || is != was {
			since, was = t.Timestamp, is
		}
	}
	return since
}

// turnWords say in the history, and in events, what each type of turn did.
var turnWords = map[string]struct{ reason, event, text string }{
	schemas.TurnQuestion:   {"Asked", ClarificationRequested, "asked"},
	schemas.TurnAnswer:     {ReasonAnswered, ClarificationAnswered, "answered"},
	schemas.TurnResolution: {ReasonResolved, ClarificationResolved, "resolved it"},
	schemas.TurnEscalation: {ReasonEscalated, ClarificationEscalated, "escalated it"},
}

// recall adds the thread to the history, and since when the question is stale.
func recall(past *historyBuilder, st *schemas.ClarificationRequestStatus) {
	for i := range st.Thread {
		t := &st.Thread[i]
		if words, known := turnWords[t.Type]; known {
			past.add(t.Timestamp, words.reason, fmt.Sprintf("%s %s, round %d", t.From, words.text, t.Round))
		}
	}
	if !st.StaleSince.IsZero() {
		past.add(st.StaleSince, ReasonStale, fmt.Sprintf("no answer in time, round %d", lastAsked(st)))
	}
}

// lastAsked is the round of the last question. A resolution has a round of its own.
func lastAsked(st *schemas.ClarificationRequestStatus) int {
	round := 1
	for i := range st.Thread {
		if t := &st.Thread[i]; t.Type == schemas.TurnQuestion {
			round = t.Round
		}
	}
	return round
}

// requestStatus is the status that a request has now: as decided where it is being decided, else as it stands. It is
// never nil.
func (w *requests) requestStatus(e *state.Entry) *schemas.ClarificationRequestStatus {
	if st, ok := w.world.Status(e).(*schemas.ClarificationRequestStatus); ok {
		return st
	}
	return new(schemas.ClarificationRequestStatus)
}

// requestNote has the id of a clarification and its phase.
func requestNote(s schemas.Status) string {
	if st, ok := s.(*schemas.ClarificationRequestStatus); ok && st.ID != "" {
		return st.ID + " " + st.Phase
	}
	return ""
}
