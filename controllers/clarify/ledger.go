package clarify

import (
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// sameTurn reports whether two turns are one. Their times may differ: a turn keeps the time at which it was first
// written.
func sameTurn(a, b schemas.ClarificationTurn) bool {
	return a.Round == b.Round && a.Type == b.Type && a.From == b.From && a.Body == b.Body
}

// foreign lists the turns of theirs that ours does not have, in their order.
func foreign(theirs, ours []schemas.ClarificationTurn) []schemas.ClarificationTurn {
	var out []schemas.ClarificationTurn
	taken := make([]bool, len(ours))
next:
	for _, t := range theirs {
		for i := range ours {
			if !taken[i] && sameTurn(t, ours[i]) {
				taken[i] = true
				continue next
			}
		}
		out = append(out, t)
	}
	return out
}

// ahead reports whether another program advanced a record further than the status, without an entry for it. Decide
// follows it, and Fold refuses to overwrite it.
func ahead(theirs *schemas.Clarification, phase string, round int) bool {
	var from []string
	switch theirs.Status {
	case schemas.ClarificationAbandoned, schemas.ClarificationStale:
		from = []string{schemas.ClarificationPending}
	case schemas.ClarificationEscalated:
		from = []string{schemas.ClarificationPending, schemas.ClarificationAnswered, schemas.ClarificationStale}
	case schemas.ClarificationResolved:
		from = []string{schemas.ClarificationAnswered, schemas.ClarificationEscalated}
	}
	sameRound := theirs.Round == round || theirs.Status == schemas.ClarificationResolved && theirs.Round > round
	for _, f := range from {
		if f == phase {
			return sameRound
		}
	}
	return false
}

// fromLedger returns the next entry of another program. Each is added, and moves the state along an edge of the state
// machine, if there is one.
func (d *decider) fromLedger() *event {
	if d.input.Ledger == nil {
		return nil
	}
	rest := foreign(d.input.Ledger.Thread, turns(d.st.Thread))
	if len(rest) == 0 {
		return nil
	}
	e := schemas.ThreadEntry{ClarificationTurn: rest[0], Source: SourceLedger}
	d.traceBack(&e)
	return &event{e.Timestamp, func() { d.takeForeign(e) }}
}

// traceBack finds the reply from which an entry was made, if a ledger was written and the status was not.
func (d *decider) traceBack(e *schemas.ThreadEntry) {
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

func (d *decider) takeForeign(e schemas.ThreadEntry) {
	switch {
	case e.Type == schemas.TurnAnswer && d.waiting():
		d.answer(e)
	case e.Type == schemas.TurnQuestion && d.in(schemas.ClarificationAnswered):
		d.takeQuestion(e)
	case e.Type == schemas.TurnResolution && reachable(d.st.Phase, schemas.ClarificationResolved):
		d.resolve(e)
		d.st.Round = max(e.Round, roundBefore(d.st.Thread))
	case e.Type == schemas.TurnEscalation && reachable(d.st.Phase, schemas.ClarificationEscalated):
		c := cause{reasonIn(e.Body), e.Timestamp, e.From + " escalated it"}
		d.escalateBy(c, e, "")
	default:
		d.addEntry(e) // nothing that was written is lost, even where it means nothing
	}
}

// takeQuestion is follow for a question that is already in the ledger, and therefore in the thread.
func (d *decider) takeQuestion(e schemas.ThreadEntry) {
	round := max(e.Round, d.st.Round+1)
	if round > d.st.MaxRounds {
		d.addEntry(e)
		d.escalate(cause{schemas.EscalatedMaxRounds, e.Timestamp, roundsUsed(d.st.MaxRounds)})
		return
	}
	d.move(schemas.ClarificationPending, e.Timestamp, e.From+" asks a further question")
	d.ask(round, e)
	d.checkCircle(e.Timestamp)
}

// roundBefore is the highest round of a thread without its last entry.
func roundBefore(thread []schemas.ThreadEntry) int {
	round := 1
	for _, e := range thread[:len(thread)-1] {
		round = max(round, e.Round)
	}
	return round
}

// applyStatus follows another program that set the status without an entry.
func (d *decider) applyStatus() {
	c := d.input.Ledger
	if c == nil || !ahead(c, d.st.Phase, d.st.Round) {
		return
	}
	now := schemas.NewTime(d.input.Now)
	message := "another program set the status to " + c.Status
	switch c.Status {
	case schemas.ClarificationStale:
		d.stale(earlier(d.st.StaleAfter, now))
	case schemas.ClarificationAbandoned:
		d.move(c.Status, now, message)
	case schemas.ClarificationEscalated:
		d.escalate(cause{schemas.EscalatedByReply, now, message})
	case schemas.ClarificationResolved:
		d.close(c, now, message)
	}
}

// close resolves a question as in the ledger.
func (d *decider) close(c *schemas.Clarification, now schemas.Time, message string) {
	at := c.ResolvedAt
	if at.IsZero() {
		at = now
	}
	wasEscalated := d.in(schemas.ClarificationEscalated)
	d.move(c.Status, at, message)
	d.st.Round, d.st.ResolvedAt = max(c.Round, d.st.Round), at
	d.st.Summary = summary(d.input.Spec, d.st.Thread, wasEscalated)
}

func earlier(a, b schemas.Time) schemas.Time {
	if b.Before(a.Time) {
		return b
	}
	return a
}

// reasonIn is the reason that the text of an escalation begins with, as headline writes it.
func reasonIn(body string) string {
	_, rest, ok := strings.Cut(body, "(")
	reason, _, closed := strings.Cut(rest, ")")
	if _, known := options[reason]; ok && closed && known && strings.HasPrefix(body, "Escalated (") {
		return reason
	}
	return schemas.EscalatedByReply
}
