package clarify

import "reconcile.dev/reconcile/schemas"

// CompareProgress orders two states of one matter: the more advanced is the greater. See [Merge].
func CompareProgress(a, b *schemas.Clarification) int { return progress(a, b) }

// CompareTurns is the order of a thread: by time, then by what a turn is.
func CompareTurns(a, b schemas.ClarificationTurn) int {
	return compareTurns(&turn{ClarificationTurn: a}, &turn{ClarificationTurn: b})
}
