package work

import (
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// toApprove says what waits for an approval of people: a task before it starts, or its commit before it lands, and why.
func toApprove(s *schemas.NodeStatus, task string) string {
	if s.Landed == nil {
		return "approve: " + task
	}
	message, _, _ := strings.Cut(s.Message, "; reconcile ")
	if _, why, ok := strings.Cut(message, ", since "); ok {
		return "approve: the commit, since " + why + ", of: " + task
	}
	return "approve: the commit of: " + task
}
