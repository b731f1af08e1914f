package clarify

import (
	"slices"

	"reconcile.dev/reconcile/schemas"
)

// edges is the state machine (agentx-architecture 6.1): the successors of each state. Resolved and abandoned are
// final.
var edges = map[string][]string{
	"": {schemas.ClarificationPending},
	schemas.ClarificationPending: {schemas.ClarificationAnswered, schemas.ClarificationStale,
		schemas.ClarificationEscalated, schemas.ClarificationAbandoned},
	schemas.ClarificationAnswered: {schemas.ClarificationPending, schemas.ClarificationResolved,
		schemas.ClarificationEscalated},
	schemas.ClarificationStale: {schemas.ClarificationPending, schemas.ClarificationEscalated},

	schemas.ClarificationEscalated: {schemas.ClarificationResolved},
}

// Legal reports whether the edges of the state machine lead from one status of a question to another. "" is that of a
// question that does not exist yet.
func Legal(from, to string) bool { return slices.Contains(edges[from], to) }

// reachable reports whether one edge, or the two of an answer to a stale question, lead to a state.
func reachable(from, to string) bool {
	return Legal(from, to) ||
		from == schemas.ClarificationStale && to == schemas.ClarificationAnswered
}

// move follows an edge; without one it does nothing and returns false. Nothing else changes the phase.
func (d *decider) move(to string, at schemas.Time, message string) bool {
	from := d.st.Phase
	if !Legal(from, to) {
		return false
	}
	d.st.Phase = to
	d.moves = append(d.moves, Move{From: from, To: to, At: at, Message: message})
	return true
}

// Move is one transition along an edge of the picture.
type Move struct {
	From, To string // Clarification constants; From is "" for a new matter
	At       schemas.Time
	Message  string // why, in a sentence
}
