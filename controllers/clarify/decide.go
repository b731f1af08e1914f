package clarify

import (
	"slices"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// Sources of entries that come from neither an object nor a run.
const (
	SourceRequest = "request"
	SourceLedger  = "ledger"
	SourceMonitor = "monitor"
)

// Hub is the author of automatic escalations.
const Hub = "reconcile"

// decider holds the state of one decision.
type decider struct {
	input *Input
	st    schemas.ClarificationRequestStatus
	moves []Move
}

// Decide decides about a clarification: it applies the status, the replies and external events of the input, and
// returns the decision with the current status and the next action. It is a pure function of in, and does not change
// it.
func (m *Input) Decide() Decision {
	d := &decider{input: m}
	d.begin()
	d.settle()
	d.applyStatus()
	d.settle()
	d.applyReplies()
	d.applyExternal()
	return d.decision()
}

// begin starts from the old status, or makes one from the request.
func (d *decider) begin() {
	if d.input.Old != nil && !d.input.Old.Created.IsZero() {
		d.st = *d.input.Old
		d.st.ID = d.input.ID
		d.st.Thread = slices.Clip(d.input.Old.Thread)
		d.st.Refused = d.refusalsKept()
		return
	}
	if d.input.Old != nil {
		d.st.Common = d.input.Old.Common
		d.st.Phase = ""
	}
	d.st.ID, d.st.Created, d.st.MaxRounds = d.input.ID, schemas.NewTime(d.input.Now), d.input.Limits.Rounds
	if c := d.input.Ledger; c != nil {
		d.adoptLedger(c)
	}
	d.move(schemas.ClarificationPending, d.st.Created, d.input.Spec.From+" asks "+d.input.Spec.To)
	d.ask(1, d.firstQuestion())
	if c := d.input.Ledger; c != nil && c.Round <= 1 && !c.StaleAfter.IsZero() {
		d.st.StaleAfter = c.StaleAfter
	}
}

// adoptLedger copies the ledger's fields of a question without a status: another program wrote it, or the status was
// lost.
func (d *decider) adoptLedger(c *schemas.Clarification) {
	if !c.Created.IsZero() {
		d.st.Created = c.Created
	}
	if c.MaxRounds > 0 {
		d.st.MaxRounds = min(c.MaxRounds, hardCap(d.input.Spec.Blocking))
	}
}

// firstQuestion returns the request's question, with its time in the ledger.
func (d *decider) firstQuestion() schemas.ThreadEntry {
	e := schemas.ThreadEntry{Source: SourceRequest, ClarificationTurn: schemas.ClarificationTurn{Round: 1,
		From: d.input.Spec.From, Type: schemas.TurnQuestion, Body: d.input.Spec.Question, Timestamp: d.st.Created}}
	if c := d.input.Ledger; c != nil {
		for _, t := range c.Thread {
			if sameTurn(t, e.ClarificationTurn) && !t.Timestamp.IsZero() {
				e.Timestamp = t.Timestamp
			}
		}
	}
	return e
}

// ask appends a question and begins its round.
func (d *decider) ask(round int, e schemas.ThreadEntry) {
	d.st.Round = round
	d.st.StaleSince = schemas.Time{}
	d.st.StaleAfter = schemas.NewTime(e.Timestamp.Add(d.input.Limits.SLA))
	d.addEntry(e)
}

func (d *decider) addEntry(e schemas.ThreadEntry) { d.st.Thread = append(d.st.Thread, e) }

// settle applies everything that has a time, the earliest first, until nothing applicable is left.
func (d *decider) settle() {
	for e := d.next(); e != nil; e = d.next() {
		e.take()
	}
}

// event is an event with a time that is applicable in the present state.
type event struct {
	at   schemas.Time
	take func()
}

// next returns the earliest event; at the same time, an answer precedes the end of its time.
func (d *decider) next() *event {
	var first *event
	for _, e := range []*event{d.fromRuns(), d.fromTask(), d.fromLedger(), d.fromClock()} {
		if e != nil && (first == nil || e.at.Before(first.at.Time)) {
			first = e
		}
	}
	return first
}

// waiting reports whether an answer is missing.
func (d *decider) waiting() bool {
	return d.st.Phase == schemas.ClarificationPending || d.st.Phase == schemas.ClarificationStale
}

func (d *decider) in(states ...string) bool { return slices.Contains(states, d.st.Phase) }

// fromClock returns the end of the time for an answer: first the question becomes stale. If a person is asked, the
// second end escalates it; an agent is run again, and its failure escalates it.
func (d *decider) fromClock() *event {
	switch {
	case d.in(schemas.ClarificationPending) && !d.input.Now.Before(d.st.StaleAfter.Time):
		at := d.st.StaleAfter
		return &event{at, func() { d.stale(at) }}
	case d.in(schemas.ClarificationStale) && d.input.Target.Human && !d.input.Now.Before(d.lastCall()):
		at := schemas.NewTime(d.lastCall())
		return &event{at, func() {
			d.escalate(cause{schemas.EscalatedStale, at, d.input.Spec.To + " has not answered in twice the time"})
		}}
	}
	return nil
}

// lastCall returns the time at which a person's time is over for the second time.
func (d *decider) lastCall() time.Time { return d.st.StaleAfter.Add(d.input.Limits.SLA) }

func (d *decider) stale(at schemas.Time) {
	if d.move(schemas.ClarificationStale, at, d.input.Spec.To+" has not answered in time") {
		d.st.StaleSince = at
	}
}

// answer appends an answer to the present round. A stale question becomes pending again first (decision 13).
func (d *decider) answer(e schemas.ThreadEntry) {
	if d.in(schemas.ClarificationStale) {
		d.move(schemas.ClarificationPending, e.Timestamp, "the retry brought an answer")
		d.st.StaleSince = schemas.Time{}
	}
	d.addEntry(e)
	d.move(schemas.ClarificationAnswered, e.Timestamp, e.From+" answered")
	d.checkCircle(e.Timestamp)
}

// askAgain appends a further question, or escalates the matter when the rounds are used up: then it is not asked any
// more.
func (d *decider) askAgain(e schemas.ThreadEntry) {
	if e.Round > d.st.MaxRounds {
		d.exhausted(e)
		return
	}
	d.move(schemas.ClarificationPending, e.Timestamp, e.From+" asks a further question")
	d.ask(e.Round, e)
	d.checkCircle(e.Timestamp)
}

// resolve appends a resolution; it takes the round after the last one, outside of the limit (decision 13).
func (d *decider) resolve(e schemas.ThreadEntry) {
	wasEscalated := d.in(schemas.ClarificationEscalated)
	d.move(schemas.ClarificationResolved, e.Timestamp, e.From+" resolved it")
	d.st.Round, d.st.ResolvedAt = e.Round, e.Timestamp
	d.addEntry(e)
	d.st.Summary = summary(d.input.Spec, d.st.Thread, wasEscalated)
}

// checkCircle escalates a matter whose last two rounds say the same.
func (d *decider) checkCircle(at schemas.Time) {
	if Circles(turns(d.st.Thread)) {
		d.escalate(cause{schemas.EscalatedStuck, at, "the last two rounds say the same"})
	}
}

func turns(thread []schemas.ThreadEntry) []schemas.ClarificationTurn {
	out := make([]schemas.ClarificationTurn, len(thread))
	for i := range thread {
		out[i] = thread[i].ClarificationTurn
	}
	return out
}

// applyExternal applies the inputs that have no time: the ledger's status, a continuing asker, a missing target, an
// order.
func (d *decider) applyExternal() {
	now := schemas.NewTime(d.input.Now)
	d.applyStatus()
	if d.input.Left != "" && d.in(schemas.ClarificationPending) {
		d.move(schemas.ClarificationAbandoned, now, d.input.Spec.From+" went on: "+d.input.Left)
	}
	if d.input.Target.Gone && d.waiting() {
		d.escalate(cause{schemas.EscalatedTarget, now, "there is no agent " + d.input.Spec.To + " any more"})
	}
	if o := d.input.Order; o != nil && d.orderApplies(o.Reason) {
		d.escalate(cause{o.Reason, now, o.Message})
	}
	d.applyStatus()
}

// orderApplies reports whether an order still applies: an answered question is not part of a deadlock.
func (d *decider) orderApplies(reason string) bool {
	return d.waiting() || d.in(schemas.ClarificationAnswered) && reason != schemas.EscalatedDeadlock
}
