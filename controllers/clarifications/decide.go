// Package clarifications decides ClarificationRequests and Replies: it finds in the tree what package clarify decides by, numbers
// requests, and follows them through their ledgers.
package clarifications

import (
	"cmp"
	"fmt"

	"reconcile.dev/reconcile/controllers/admission"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// decide follows a question through its life: see package clarify. A request that was refused has no phase.
func decide(in settle.In) settle.Out {
	if in.Gone() {
		return settle.Out{}
	}
	w := RequestsOf(in.World)
	f := w.provisional(in.Entry)
	if f.undecided != nil {
		return keepStatus(in, f)
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
	st.Common = settle.Common(in.Status())
	st.Phase = v.Status.Phase
	past := settle.History{Old: st.History}
	recallEffect(&past, &st)
	st.History = past.Entries()
	j := judge(&st, &f.input, v)
	out := settle.Out{Status: &st, Again: v.Again, Await: v.Await}
	if v.Ask != nil {
		out.Effects = []settle.Effect{w.askEffect(in.Entry, &f.input, &st, v.Ask)}
		withoutAgent(in, &out, &j)
		w.withoutBudget(in, &out, &j)
	}
	j.Settle(&st.Common, f.digest, in.Now)
	return out
}

// keepStatus keeps the status of a request that cannot be decided, and lets its runs continue.
func keepStatus(in settle.In, f *provisional) settle.Out {
	st := *Status(in.Entry)
	if st.History == nil {
		st.History = []schemas.HistoryEntry{}
	}
	f.undecided.Settle(&st.Common, f.digest, in.Now)
	out := settle.Out{Status: &st}
	for i := range in.Claims {
		if c := &in.Claims[i]; !c.StartedAt.IsZero() {
			out.Effects = append(out.Effects, settle.Effect{Key: c.Key, Owner: in.Ref, Node: c.Node, NodeKey: c.NodeKey, Seq: c.Seq,
				Agent: c.Agent, Groups: admission.GroupsOf(in.Tree, in.Entry, "", c)})
		}
	}
	return out
}

// requestClass maps the phase of a request to its class and reason.
var requestClass = map[string]struct {
	Class  settle.Class
	reason string
}{
	schemas.ClarificationPending:   {settle.ClassWaiting, settle.ReasonPending},
	schemas.ClarificationStale:     {settle.ClassWaiting, settle.ReasonStale},
	schemas.ClarificationAnswered:  {settle.ClassReady, settle.ReasonAnswered},
	schemas.ClarificationResolved:  {settle.ClassReady, settle.ReasonResolved},
	schemas.ClarificationAbandoned: {settle.ClassReady, settle.ReasonAbandoned},
	schemas.ClarificationEscalated: {settle.ClassWaiting, settle.ReasonEscalated},
}

// judge finds the conditions. Where a program is asked, or is asked again soon, reconcile is at it; else it is a
// person's turn.
func judge(st *schemas.ClarificationRequestStatus, m *clarify.Input, v clarify.Decision) settle.Judgement {
	row := requestClass[st.Phase]
	j := settle.Judgement{Phase: st.Phase, Class: row.Class, Reason: row.reason, Since: readySince(st).Time,
		Message: cmp.Or(v.Message, fmt.Sprintf("%s: %s asks %s", st.ID, m.Spec.From, m.Spec.To))}
	if j.Class == settle.ClassWaiting && (v.Ask != nil || v.Await) {
		j.Class = settle.ClassWorking
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
	schemas.TurnQuestion:   {"Asked", settle.ClarificationRequested, "asked"},
	schemas.TurnAnswer:     {settle.ReasonAnswered, settle.ClarificationAnswered, "answered"},
	schemas.TurnResolution: {settle.ReasonResolved, settle.ClarificationResolved, "resolved it"},
	schemas.TurnEscalation: {settle.ReasonEscalated, settle.ClarificationEscalated, "escalated it"},
}

// recallEffect adds the thread to the history, and since when the question is stale.
func recallEffect(past *settle.History, st *schemas.ClarificationRequestStatus) {
	for i := range st.Thread {
		t := &st.Thread[i]
		if words, known := turnWords[t.Type]; known {
			past.Add(t.Timestamp, words.reason, fmt.Sprintf("%s %s, round %d", t.From, words.text, t.Round))
		}
	}
	if !st.StaleSince.IsZero() {
		past.Add(st.StaleSince, settle.ReasonStale, fmt.Sprintf("no answer in time, round %d", lastAsked(st)))
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
