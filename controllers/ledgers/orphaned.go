package ledgers

import (
	"reconcile.dev/reconcile/controllers/clarifications"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Orphaned reports whether the request of a ledger's record is missing from the tree, or its name belongs to another
// question now. The record stays, and blocks nothing.
func Orphaned(t *state.Tree, c *schemas.Clarification) bool {
	if c.Request == "" {
		return false // another program wrote it
	}
	e := t.Entry(schemas.ClarificationRequestKind.Ref(c.Request))
	if e == nil || e.Gone() {
		return true
	}
	id := clarifications.Status(e).ID
	return id != "" && id != c.ID
}
