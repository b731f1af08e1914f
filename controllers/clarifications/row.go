package clarifications

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/mirror"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors/project"
)

// Kind is the row of kind ClarificationRequest.
var Kind = settle.Kind{Kind: schemas.ClarificationRequestKind, Decide: decide, Columns: columns,
	DependsOn: []string{schemas.DAGKind.Name}, Sources: []string{state.LedgerKind},
	Performs: true, PartOf: askingNode, Steps: askSteps, Tries: askTries, Events: events,
	Affects: affects, Before: addOrdered, After: addNumbered, Shared: true,
	Origin: origin, Rests: rests, Note: note, Mirror: &mirror.Clarification, Index: &project.Clarification}

var columns = []settle.Column{
	readiness.OfStatus("ID", func(s *schemas.ClarificationRequestStatus) string { return s.ID }),
	readiness.Ready, readiness.Phase,
	readiness.OfSpec("FROM", func(s *schemas.ClarificationRequestSpec) string { return s.From }),
	readiness.OfSpec("TO", func(s *schemas.ClarificationRequestSpec) string { return s.To }),
	readiness.OfSpec("BLOCKING", func(s *schemas.ClarificationRequestSpec) string { return fmt.Sprint(s.Blocking) }),
	readiness.OfSpec("TOPIC", func(s *schemas.ClarificationRequestSpec) string { return s.Topic }),
}

// note has the id of a clarification and its phase.
func note(s schemas.Status) string {
	if st, ok := s.(*schemas.ClarificationRequestStatus); ok && st.ID != "" {
		return st.ID + " " + st.Phase
	}
	return ""
}

// askingNode is [settle.Kind.PartOf] for requests: they belong to the node that asks.
func askingNode(e *state.Entry, _ string) (dag, node string) {
	if spec := Spec(e); spec != nil {
		dag, node, _ = schemas.SplitRunKey(spec.Run)
	}
	return dag, node
}

// ReplyKind is the row of kind Reply.
var ReplyKind = settle.Kind{Kind: schemas.ReplyKind, Decide: decideReply, Columns: replyColumns,
	Affects: replyAffects, Origin: replyOrigin, Rests: replyRests, Retired: replyRetired}

// rests: a question that a person asked outside of a run, and that was answered or has ended.
func rests(*state.Tree) func(*state.Entry) bool {
	return func(e *state.Entry) bool {
		b, spec := e.Brief(), Spec(e)
		return e.HasStatus() && b.ID != "" && b.Ready == schemas.True && e.RunCount() == 0 && spec != nil && spec.Run == ""
	}
}

// replyRests: a reply that calls its question by name, and that this has taken.
func replyRests(t *state.Tree) func(*state.Entry) bool {
	return func(e *state.Entry) bool {
		if e.HasStatus() || len(e.Object.Refs) == 0 {
			return false
		}
		for _, r := range e.Object.Refs {
			if r.To.Kind == schemas.ClarificationRequestKind.Name {
				return slices.ContainsFunc(Status(t.Entry(r.To)).Thread, func(turn schemas.ThreadEntry) bool { return turn.Source == fromReply+e.Name })
			}
		}
		return false
	}
}

var replyColumns = []settle.Column{
	readiness.Ready,
	readiness.OfSpec("TYPE", func(s *schemas.ReplySpec) string { return s.Type }),
	readiness.OfSpec("FROM", func(s *schemas.ReplySpec) string { return s.From }),
	readiness.OfSpec("CLARIFICATION", func(s *schemas.ReplySpec) string { return s.Clarification }),
	{Head: "WHY", Text: readiness.Because},
}

// askSteps lists the run of the agent that would be asked, now or when the time of a failure is over.
func askSteps(e *state.Entry, out settle.Out) []settle.Step {
	spec := Spec(e)
	st, ok := out.Status.(*schemas.ClarificationRequestStatus)
	if spec == nil || !ok {
		return nil
	}
	asks := settle.Step{Ref: e.Ref, Verb: settle.StepRun, Node: fmt.Sprintf("round_%d", st.Round),
		Why: fmt.Sprintf("asks %s for %s: %s", spec.To, spec.From, spec.Topic)}
	for i := range out.Effects {
		if asks.Node = out.Effects[i].Node; settle.ClaimOf(e, out.Effects[i].Key) == nil {
			return []settle.Step{asks}
		}
	}
	if out.Await && len(out.Effects) == 0 {
		asks.Why += "; the next attempt is due at " + out.Again.Format(time.RFC3339)
		return []settle.Step{asks}
	}
	return nil
}

// askTries is the run of the agent that is asked.
func askTries(e *state.Entry, _ string) settle.Tries { return settle.Tries{Most: 1, Agent: Spec(e).To} }

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

// origin: an agent's run or a ledger asked, or a command, once the question has its number.
func origin(*state.Tree) func(*state.Entry) settle.Origin {
	return func(e *state.Entry) settle.Origin {
		spec, st := Spec(e), Status(e)
		switch {
		case spec.Run+spec.Imported != "":
			return settle.OriginRecord
		case st.ID != "" && st.ObservedDigest == e.Object.Digest:
			return settle.OriginCommand
		}
		return settle.OriginUser
	}
}
