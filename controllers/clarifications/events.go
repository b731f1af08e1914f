package clarifications

import (
	"cmp"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// phaseAfter is the phase that an event leads to.
var phaseAfter = map[string]string{
	settle.ClarificationRequested: schemas.ClarificationPending,
	settle.ClarificationAnswered:  schemas.ClarificationAnswered,
	settle.ClarificationStale:     schemas.ClarificationStale,
	settle.ClarificationResolved:  schemas.ClarificationResolved,
	settle.ClarificationEscalated: schemas.ClarificationEscalated,
}

// events lists the turns that were added to the thread of a request between two statuses, and that it became
// stale, in order. It reports every turn: a question that was asked, became stale and was answered makes three events.
func events(before, after *state.Entry) []settle.Event {
	was, is := Status(before), Status(after)
	spec := Spec(after)
	if spec == nil || is.ID == "" {
		return nil
	}
	var said []settle.Clarified
	tell := func(typ string, round int, at schemas.Time) {
		said = append(said, settle.Clarified{Type: typ, ClarificationID: is.ID, IssueNumber: spec.Issue, FromAgent: spec.From,
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
		tell(settle.ClarificationStale, lastAsked(is), is.StaleSince)
	}
	slices.SortStableFunc(said, func(a, b settle.Clarified) int { return a.Timestamp.Compare(b.Timestamp.Time) })
	return clarifiedEvents(after.Ref, was.Phase, said)
}

func clarifiedEvents(ref schemas.Ref, phase string, said []settle.Clarified) []settle.Event {
	var out []settle.Event
	for i := range said {
		c := &said[i]
		word, _ := strings.CutPrefix(c.Type, "clarification-")
		out = append(out, settle.Event{Time: c.Timestamp, Ref: ref, From: phase, To: c.Status, Clarified: c,
			Reason:  strings.ToUpper(word[:1]) + word[1:],
			Warning: c.Type == settle.ClarificationStale || c.Type == settle.ClarificationEscalated, // somebody is to do something
			Message: c.ClarificationID + ", " + c.FromAgent + " to " + c.ToAgent + ": " + cmp.Or(c.Topic, word)})
		phase = c.Status
	}
	return out
}
