package clarify

import (
	"encoding/json"
	"fmt"
	"strconv"

	"reconcile.dev/reconcile/schemas"
)

// fromLedger returns the next entry of another program. Each is added, and moves the state along an edge of the state
// machine, if there is one.
func (d *clarifyDecider) fromLedger() *event {
	if d.input.Ledger == nil {
		return nil
	}
	rest := foreignTurns(d.input.Ledger.Thread, ledgerTurns(d.st.Thread))
	if len(rest) == 0 {
		return nil
	}
	e := schemas.ThreadEntry{ClarificationTurn: rest[0], Source: SourceLedger}
	d.traceBack(&e)
	return &event{e.Timestamp, func() { d.takeForeign(e) }}
}

func (d *clarifyDecider) takeForeign(e schemas.ThreadEntry) {
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
func (d *clarifyDecider) takeQuestion(e schemas.ThreadEntry) {
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

// applyStatus follows another program that set the status without an entry.
func (d *clarifyDecider) applyStatus() {
	c := d.input.Ledger
	if c == nil || !foldAhead(c, d.st.Phase, d.st.Round) {
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

// adoptLedger copies the ledger's fields of a question without a status: another program wrote it, or the status was
// lost.
func (d *clarifyDecider) adoptLedger(c *schemas.Clarification) {
	if !c.Created.IsZero() {
		d.st.Created = c.Created
	}
	if c.MaxRounds > 0 {
		d.st.MaxRounds = min(c.MaxRounds, hardCap(d.input.Spec.Blocking))
	}
}

// firstQuestion returns the request's question, with its time in the ledger.
func (d *clarifyDecider) firstQuestion() schemas.ThreadEntry {
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

func ledgerTurns(thread []schemas.ThreadEntry) []schemas.ClarificationTurn {
	out := make([]schemas.ClarificationTurn, len(thread))
	for i := range thread {
		out[i] = thread[i].ClarificationTurn
	}
	return out
}

// Record makes the ledger's record of a clarification request from its name, spec and status.
func Record(name string, spec *schemas.ClarificationRequestSpec,
	st *schemas.ClarificationRequestStatus) schemas.Clarification {
	return schemas.Clarification{ID: st.ID, From: spec.From, To: spec.To, Topic: spec.Topic, Blocking: spec.Blocking,
		Status: st.Phase, Round: st.Round, MaxRounds: st.MaxRounds, Created: st.Created, StaleAfter: st.StaleAfter,
		ResolvedAt: st.ResolvedAt, Thread: ledgerTurns(st.Thread), Request: name}
}

// lastSeq returns the number in the value of a ledger's [schemas.LedgerLastID], 0 for other text than an id of the
// issue.
func lastSeq(value json.RawMessage, issue int) int {
	id, err := strconv.Unquote(string(value))
	if err != nil {
		return 0
	}
	return LastSeq(issue, id)
}

// KnownStatus reports whether the status of a record has one of the ranks of the specification.
func KnownStatus(status string) bool { return ranks[status] > 0 }

func firstQuestion(c *schemas.Clarification) string {
	for _, t := range c.Thread {
		if t.Type == schemas.TurnQuestion {
			return t.Body
		}
	}
	return ""
}

// stranger returns why an agent may not write this. Persons may write anything.
func (d *clarifyDecider) stranger(r Reply) string {
	asks, asked := r.Spec.From == d.input.Spec.From, r.Spec.From == d.input.Spec.To
	switch typ := r.Spec.Type; {
	case !r.Agent:
		return ""
	case typ == schemas.TurnAnswer && !asked:
		return fmt.Sprintf("agent %s was not asked: %s or a person can answer %s", r.Spec.From, d.input.Spec.To, d.st.ID)
	case !asks && typ != schemas.TurnAnswer && !(asked && typ == schemas.TurnEscalation) &&
		!d.in(schemas.ClarificationEscalated):
		return fmt.Sprintf("%s of agent %s cannot be taken: that is for %s, who asks, or a person",
			article(typ), r.Spec.From, d.input.Spec.From)
	}
	return ""
}
