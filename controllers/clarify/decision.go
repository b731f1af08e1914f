package clarify

import (
	"fmt"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// decision returns the decision for the status.
func (d *decider) decision() Decision {
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

// message describes the state, with id and parties.
func (d *decider) message() string {
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

func (d *decider) retryMessage() string {
	if d.input.Target.Human {
		return "it is escalated if the time passes once more"
	}
	return "it is asked once more"
}
