package clarify

import (
	"cmp"
	"fmt"
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

// clarifyDecider holds the state of one decision.
type clarifyDecider struct {
	input *Input
	st    schemas.ClarificationRequestStatus
	moves []Move
}

// Decide decides about a clarification: it applies the status, the replies and external events of the input, and
// returns the decision with the current status and the next action. It is a pure function of in, and does not change
// it.
func (m *Input) Decide() Decision {
	d := &clarifyDecider{input: m}
	d.begin()
	d.settle()
	d.applyStatus()
	d.settle()
	d.applyReplies()
	d.applyExternal()
	return d.decision()
}

// begin starts from the old status, or makes one from the request.
func (d *clarifyDecider) begin() {
	if d.input.Old != nil && !d.input.Old.Created.IsZero() {
		d.st = *d.input.Old
		d.st.ID = d.input.ID
		d.st.Thread = slices.Clip(d.input.Old.Thread)
		d.st.Refused = d.refusalsKept()
		if !d.in(phases...) {
			d.st.Phase = phaseOfThread(d.st.Thread)
		}
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

var phases = []string{schemas.ClarificationPending, schemas.ClarificationStale, schemas.ClarificationAnswered, schemas.ClarificationResolved,
	schemas.ClarificationAbandoned, schemas.ClarificationEscalated}

// phaseOfThread is the phase that the turns of a thread led to, for a status whose phase is none: something else than reconcile wrote it.
func phaseOfThread(thread []schemas.ThreadEntry) string {
	after := map[string]string{schemas.TurnQuestion: schemas.ClarificationPending, schemas.TurnAnswer: schemas.ClarificationAnswered,
		schemas.TurnResolution: schemas.ClarificationResolved, schemas.TurnEscalation: schemas.ClarificationEscalated}
	phase := schemas.ClarificationPending
	for i := range thread {
		phase = cmp.Or(after[thread[i].Type], phase)
	}
	return phase
}

// ask appends a question and begins its round.
func (d *clarifyDecider) ask(round int, e schemas.ThreadEntry) {
	d.st.Round = round
	d.st.StaleSince = schemas.Time{}
	d.st.StaleAfter = schemas.NewTime(e.Timestamp.Add(d.input.Limits.SLA))
	d.addEntry(e)
}

func (d *clarifyDecider) addEntry(e schemas.ThreadEntry) { d.st.Thread = append(d.st.Thread, e) }

// settle applies everything that has a time, the earliest first, until nothing applicable is left.
func (d *clarifyDecider) settle() {
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
func (d *clarifyDecider) next() *event {
	var first *event
	for _, e := range []*event{d.fromRuns(), d.fromTask(), d.fromLedger(), d.fromClock()} {
		if e != nil && (first == nil || e.at.Before(first.at.Time)) {
			first = e
		}
	}
	return first
}

// waiting reports whether an answer is missing.
func (d *clarifyDecider) waiting() bool {
	return d.st.Phase == schemas.ClarificationPending || d.st.Phase == schemas.ClarificationStale
}

func (d *clarifyDecider) in(states ...string) bool { return slices.Contains(states, d.st.Phase) }

// fromClock returns the end of the time for an answer: first the question becomes stale. If a person is asked, the
// second end escalates it; an agent is run again, and its failure escalates it.
func (d *clarifyDecider) fromClock() *event {
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
func (d *clarifyDecider) lastCall() time.Time { return d.st.StaleAfter.Add(d.input.Limits.SLA) }

func (d *clarifyDecider) stale(at schemas.Time) {
	if d.move(schemas.ClarificationStale, at, d.input.Spec.To+" has not answered in time") {
		d.st.StaleSince = at
	}
}

// answer appends an answer to the present round. A stale question becomes pending again first (decision 13).
func (d *clarifyDecider) answer(e schemas.ThreadEntry) {
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
func (d *clarifyDecider) askAgain(e schemas.ThreadEntry) {
	if e.Round > d.st.MaxRounds {
		d.exhausted(e)
		return
	}
	d.move(schemas.ClarificationPending, e.Timestamp, e.From+" asks a further question")
	d.ask(e.Round, e)
	d.checkCircle(e.Timestamp)
}

// resolve appends a resolution; it takes the round after the last one, outside of the limit (decision 13).
func (d *clarifyDecider) resolve(e schemas.ThreadEntry) {
	wasEscalated := d.in(schemas.ClarificationEscalated)
	d.move(schemas.ClarificationResolved, e.Timestamp, e.From+" resolved it")
	d.st.Round, d.st.ResolvedAt = e.Round, e.Timestamp
	d.addEntry(e)
	d.st.Summary = summary(d.input.Spec, d.st.Thread, wasEscalated)
}

// checkCircle escalates a matter whose last two rounds say the same.
func (d *clarifyDecider) checkCircle(at schemas.Time) {
	if similarCircles(ledgerTurns(d.st.Thread)) {
		d.escalate(cause{schemas.EscalatedStuck, at, "the last two rounds say the same"})
	}
}

// applyExternal applies the inputs that have no time: the ledger's status, a continuing asker, a missing target, an
// order.
func (d *clarifyDecider) applyExternal() {
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

// Input is one question with everything that its decision depends on.
type Input struct {
	Name   string // of the request
	Spec   *schemas.ClarificationRequestSpec
	Digest string // of the spec
	// ID is the clarification's id, given by the caller; Old is the status so far, nil for a new question.
	ID  string
	Old *schemas.ClarificationRequestStatus
	Now time.Time

	Limits Limits
	Target Target
	// Runs are the hub's finished runs of the target for this request, sorted by Node, NodeKey and Seq, as in a tree.
	Runs []*schemas.Run
	// Running are such runs that are claimed or under way.
	Running []*schemas.Run
	// Replies are the replies to this request, by name; broken ones are left out.
	Replies []Reply
	// Ledger is what the ledger says now, nil if nothing: other programs may have written there.
	Ledger *schemas.Clarification
	// Task is the node that asks, nil where no node does.
	Task *Task
	// Left says to what other work the asking agent went on, as a clause for messages; "" if it did not.
	Left string
	// Order escalates the matter for a reason that lies outside of it, a deadlock or a question that turns round; nil:
	// none.
	Order *Order
}

// message describes the state, with id and parties.
func (d *clarifyDecider) message() string {
	spec := d.input.Spec
	switch d.st.Phase {
	case schemas.ClarificationPending:
		return fmt.Sprintf("%s waits for %s: %s, round %d of %d", spec.From, spec.To, d.st.ID, d.st.Round, d.st.MaxRounds)
	case schemas.ClarificationStale:
		return fmt.Sprintf("%s has not answered %s in time; %s", spec.To, d.st.ID, d.retryMessage())
	case schemas.ClarificationAnswered:
		return fmt.Sprintf("%s has an answer in round %d: %s can go on, ask again or resolve it",
			d.st.ID, d.st.Round, spec.From)
	case schemas.ClarificationEscalated:
		return fmt.Sprintf("%s waits for a human. %s", d.st.ID, action(d.st.ID))
	case schemas.ClarificationAbandoned:
		return fmt.Sprintf("%s was abandoned by %s", d.st.ID, spec.From)
	}
	return fmt.Sprintf("%s is %s", d.st.ID, d.st.Phase)
}

// close resolves a question as in the ledger.
func (d *clarifyDecider) close(c *schemas.Clarification, now schemas.Time, message string) {
	at := c.ResolvedAt
	if at.IsZero() {
		at = now
	}
	wasEscalated := d.in(schemas.ClarificationEscalated)
	d.move(c.Status, at, message)
	d.st.Round, d.st.ResolvedAt = max(c.Round, d.st.Round), at
	d.st.Summary = summary(d.input.Spec, d.st.Thread, wasEscalated)
}

func lastEntry(thread []schemas.ThreadEntry, typ string) *schemas.ThreadEntry {
	for i := len(thread) - 1; i >= 0; i-- {
		if thread[i].Type == typ {
			return &thread[i]
		}
	}
	return nil
}

// decision returns the decision for the status.
func (d *clarifyDecider) decision() Decision {
	v := Decision{Status: &d.st, Moves: d.moves, Message: d.message()}
	var due time.Time
	v.Ask, due = d.wanted()
	switch {
	case !due.IsZero():
		v.Again, v.Await = due, true
	case d.in(schemas.ClarificationPending):
		v.Again = d.st.StaleAfter.Time
	case d.in(schemas.ClarificationStale) && d.input.Target.Human:
		v.Again = d.lastCall()
	}
	return v
}

// action returns the command for the human.
func action(id string) string {
	return fmt.Sprintf(`Decide, then run: reconcile clarify resolve %s "what was decided"`, id)
}
