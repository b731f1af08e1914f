package clarify

import (
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

func replySource(name string) string { return "reply/" + name }

// isApplied reports whether a reply is in the thread.
func (d *clarifyDecider) isApplied(name string) bool { return entryOf(&d.st, name) != nil }

func refusalOf(st *schemas.ClarificationRequestStatus, r Reply) *schemas.RefusedReply {
	for i := range st.Refused {
		if f := &st.Refused[i]; f.Name == r.Name && f.Digest == r.Digest {
			return f
		}
	}
	return nil
}

// Standing is the state of a reply.
type Standing int

// The states of replies.
const (
	Unheard  Standing = iota // the matter was not decided since it came
	Accepted                 // it took effect
	Refused                  // it could not be taken when it came; the message says why
	Edited                   // it took effect, and was changed afterwards: the old effect stands
)

// StandingOf returns the standing of a reply with a request's status: unheard, accepted, edited after it took effect,
// or refused with a message.
func StandingOf(st *schemas.ClarificationRequestStatus, r Reply) (s Standing, message string) {
	if f := refusalOf(st, r); f != nil {
		return Refused, f.Message
	}
	if e := entryOf(st, r.Name); e != nil {
		if e.Digest != r.Digest {
			return Edited, ""
		}
		return Accepted, ""
	}
	if st.Phase == schemas.ClarificationAbandoned && r.Spec.Type == schemas.TurnAbandonment {
		return Accepted, ""
	}
	return Unheard, ""
}

// refusalsKept returns the refusals of replies that still exist unchanged.
func (d *clarifyDecider) refusalsKept() []schemas.RefusedReply {
	gone := func(f schemas.RefusedReply) bool {
		return !slices.ContainsFunc(d.input.Replies, func(r Reply) bool { return r.Name == f.Name && r.Digest == f.Digest })
	}
	if !slices.ContainsFunc(d.input.Old.Refused, gone) {
		return slices.Clip(d.input.Old.Refused)
	}
	return slices.DeleteFunc(slices.Clone(d.input.Old.Refused), gone)
}

// applyReplies applies the new replies, by name.
func (d *clarifyDecider) applyReplies() {
	fresh := slices.DeleteFunc(slices.Clone(d.input.Replies), func(r Reply) bool {
		s, _ := StandingOf(&d.st, r)
		return s != Unheard
	})
	slices.SortFunc(fresh, func(a, b Reply) int { return strings.Compare(a.Name, b.Name) })
	for _, r := range fresh {
		if s, _ := StandingOf(&d.st, r); s != Unheard {
			continue // it agrees with an abandonment that came just before
		}
		if why := d.objection(r); why != "" {
			d.refuse(r, why)
			continue
		}
		d.applyReply(r)
		d.settle()
	}
}

func (d *clarifyDecider) refuse(r Reply, why string) {
	d.st.Refused = append(d.st.Refused, schemas.RefusedReply{Name: r.Name, Digest: r.Digest, Message: why})
	slices.SortFunc(d.st.Refused, func(a, b schemas.RefusedReply) int { return strings.Compare(a.Name, b.Name) })
}

// replyStates are the states in which a reply of each type is accepted.
var replyStates = map[string][]string{
	schemas.TurnAnswer:      {schemas.ClarificationPending, schemas.ClarificationStale},
	schemas.TurnQuestion:    {schemas.ClarificationAnswered},
	schemas.TurnResolution:  {schemas.ClarificationAnswered, schemas.ClarificationEscalated},
	schemas.TurnEscalation:  {schemas.ClarificationPending, schemas.ClarificationAnswered, schemas.ClarificationStale},
	schemas.TurnAbandonment: {schemas.ClarificationPending},
}

// Objection returns the objection of the decider to a reply, the reason why a question with this spec and status does
// not accept it; "" if it does.
func Objection(spec *schemas.ClarificationRequestSpec, st *schemas.ClarificationRequestStatus, r Reply) string {
	d := &clarifyDecider{input: &Input{Spec: spec}, st: *st}
	return d.objection(r)
}

// objection returns why a reply is not accepted now; "" if it is.
func (d *clarifyDecider) objection(r Reply) string {
	states := replyStates[r.Spec.Type]
	if !d.in(states...) {
		return fmt.Sprintf("%s of %s cannot be taken: %s is %s, and it would have to be %s",
			article(r.Spec.Type), r.Spec.From, d.st.ID, d.st.Phase, strings.Join(states, " or "))
	}
	if why := d.stranger(r); why != "" {
		return why
	}
	if r.Agent && r.Spec.Type == schemas.TurnAnswer &&
		evasiveAnswer(lastBody(d.st.Thread, schemas.TurnQuestion), r.Spec.Body) {
		return "the answer of " + r.Spec.From + " only restates the question; say what should be done"
	}
	return ""
}

// applyReply applies a reply, which was checked.
func (d *clarifyDecider) applyReply(r Reply) {
	now := schemas.NewTime(d.input.Now)
	e := schemas.ThreadEntry{Source: replySource(r.Name), Digest: r.Digest, ClarificationTurn: schemas.ClarificationTurn{
		Round: d.st.Round, From: r.Spec.From, Type: r.Spec.Type, Body: r.Spec.Body, Timestamp: now}}
	switch r.Spec.Type {
	case schemas.TurnAnswer:
		d.answer(e)
	case schemas.TurnQuestion:
		e.Round++
		d.askAgain(e)
	case schemas.TurnResolution:
		e.Round++
		d.resolve(e)
	case schemas.TurnEscalation:
		d.escalateBy(cause{schemas.EscalatedByReply, now, e.From + " escalated it"}, e, "")
	case schemas.TurnAbandonment:
		d.move(schemas.ClarificationAbandoned, now, e.From+" abandoned it")
	}
}

// traceBack finds the reply from which an entry was made, if a ledger was written and the status was not.
func (d *clarifyDecider) traceBack(e *schemas.ThreadEntry) {
	for _, r := range d.input.Replies {
		if r.Spec.Type == e.Type && r.Spec.From == e.From && r.Spec.Body == e.Body && !d.isApplied(r.Name) {
			e.Source, e.Digest = replySource(r.Name), r.Digest
			return
		}
	}
	if e.From == Hub {
		e.Source = SourceMonitor
	}
}
