package work

import (
	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/planchanges"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// forPerson reports whether a plan change waits for a person.
func forPerson(e *state.Entry) bool {
	c := readiness.ConditionOf(e, schemas.Ready)
	return e.Object != nil && c != nil && c.Reason == settle.ReasonWaitsForPerson && planchanges.Status(e).Phase == schemas.PlanPending
}

// personFor is the architect who is a person; "" for anyone.
func personFor(t *state.Tree, e *state.Entry) string {
	if who := planchanges.Status(e).Architect; agents.IsPerson(t, who) {
		return who
	}
	return ""
}
