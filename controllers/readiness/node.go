package readiness

import (
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// NodeEnded reports whether a node is in a final state.
func NodeEnded(s *schemas.NodeStatus) bool {
	switch s.State {
	case schemas.NodeSucceeded, schemas.NodeFailed, schemas.NodeSkipped, schemas.NodeCancelled:
		return true
	}
	return false
}

// NodeMet reports whether a need in this state lets its dependents start.
func NodeMet(s *schemas.NodeStatus) bool {
	return s.State == schemas.NodeSucceeded ||
		s.State == schemas.NodeSkipped && (s.Reason == settle.ReasonWhenFalse || s.Reason == settle.ReasonSkippedByAction)
}
