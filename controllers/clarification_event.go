package controllers

import (
	"cmp"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Types of the events about clarifications (agentx-prd 5).
const (
	ClarificationRequested = "clarification-requested"
	ClarificationAnswered  = "clarification-answered"
	ClarificationStale     = "clarification-stale"
	ClarificationResolved  = "clarification-resolved"
	ClarificationEscalated = "clarification-escalated"
)

// Clarified is the payload of an event about a clarification, with the field names of the specification.
type Clarified struct {
	Type            string       `json:"type"` // one of the Clarification constants of this package
	ClarificationID string       `json:"clarificationId"`
	IssueNumber     int          `json:"issueNumber"`
	FromAgent       string       `json:"fromAgent"`
	ToAgent         string       `json:"toAgent"`
	Topic           string       `json:"topic"`
	Blocking        bool         `json:"blocking"`
	Timestamp       schemas.Time `json:"timestamp"`
	Round           int          `json:"round"`
	Status          string       `json:"status"` // after the event
	// Turn is the turn, for display; nil if the event is that time ran out. Escalation is the decision that a human has to
	// make after an escalation. Neither is part of the payload.
	Turn       *schemas.ThreadEntry `json:"-"`
	Escalation *schemas.Escalation  `json:"-"`
}

// phaseAfter is the phase that an event leads to.
var phaseAfter = map[string]string{
	ClarificationRequested: schemas.ClarificationPending,
	ClarificationAnswered:  schemas.ClarificationAnswered,
	ClarificationStale:     schemas.ClarificationStale,
	ClarificationResolved:  schemas.ClarificationResolved,
	ClarificationEscalated: schemas.ClarificationEscalated,
}

// requestEvents lists the turns that were added to the thread of a request between two statuses, and that it became
// stale, in order. It reports every turn: a question that was asked, became stale and was answered makes three events.
func requestEvents(before, after *state.Entry) []Event {
	was, is := requestStatusOf(before), requestStatusOf(after)
	spec := requestSpec(after)
	if spec == nil || is.ID == "" {
		return nil
	}
	var said []Clarified
	tell := func(typ string, round int, at schemas.Time) {
		said = append(said, Clarified{Type: typ, ClarificationID: is.ID, IssueNumber: spec.Issue, FromAgent: spec.From,
			ToAgent: spec.To, Topic: spec.Topic, Blocking: spec.Blocking, Timestamp: at, Round: round,
			Status: phaseAfter[typ]})
	}
	for i := min(len(was.Thread), len(is.Thread)); i < len(is.Thread); i++ {
		t := &is.Thread[i]
		if _, known := turnWords[t.Type]; !known {
			continue // another program wrote what means nothing here
		}
		tell(turnWords[t.Type].event, t.Round, t.Timestamp)
		said[len(said)-1].Turn = t
		if t.Type == schemas.TurnEscalation {
			said[len(said)-1].Escalation = is.Escalation
		}
	}
	if !is.StaleSince.IsZero() && is.StaleSince != was.StaleSince {
		tell(ClarificationStale, lastAsked(is), is.StaleSince)
	}
	slices.SortStableFunc(said, func(a, b Clarified) int { return a.Timestamp.Compare(b.Timestamp.Time) })
	return clarifiedEvents(after.Ref, was.Phase, said)
}

func clarifiedEvents(ref schemas.Ref, phase string, said []Clarified) []Event {
	var out []Event
	for i := range said {
		c := &said[i]
		word, _ := strings.CutPrefix(c.Type, "clarification-")
		out = append(out, Event{Time: c.Timestamp, Ref: ref, From: phase, To: c.Status, Clarified: c,
			Reason:  strings.ToUpper(word[:1]) + word[1:],
			Warning: c.Type == ClarificationStale || c.Type == ClarificationEscalated, // somebody is to do something
			Message: c.ClarificationID + ", " + c.FromAgent + " to " + c.ToAgent + ": " + cmp.Or(c.Topic, word)})
		phase = c.Status
	}
	return out
}
