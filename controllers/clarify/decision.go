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

// action returns the command for the human.
func action(id string) string {
	return fmt.Sprintf(`Decide, then run: reconcile clarify resolve %s "what was decided"`, id)
}
