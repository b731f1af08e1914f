package clarifications

import (
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Refusal says why a request with this status was never taken; "" for one that was, or that no run has looked at.
func Refusal(st *schemas.ClarificationRequestStatus) string {
	c := st.Condition(schemas.Ready)
	if st.ID == "" && c != nil && (c.Reason == settle.ReasonScopeViolation || st.Condition(schemas.Stalled) != nil) {
		return c.Message
	}
	return ""
}

// RefusalOf says why a request was never taken: its agent may not ask that, or its file is broken; "" for one that was, or that no
// run has looked at.
func RefusalOf(e *state.Entry) string { return Refusal(Status(e)) }
