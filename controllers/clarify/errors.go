package clarify

import (
	"fmt"
)

// The kinds of errors that the protocol knows (agentx-spec 3.3 and 3.5).
const (
	ScopeViolation    = "SCOPE_VIOLATION"
	LockTimeout       = "LOCK_TIMEOUT" // exit code 75
	AgentError        = "AGENT_ERROR"
	NotFound          = "NOT_FOUND"
	MaxRoundsExceeded = "MAX_ROUNDS_EXCEEDED"
)

// Error is an error of the protocol. Two are equal for errors.Is when their kinds are, if the second has no message.
type Error struct {
	Kind    string // one of the constants above
	Message string // what happened and what to do, without the kind
}

// Error returns the text of the error: its kind, a colon and its message.
func (e *Error) Error() string { return e.Kind + ": " + e.Message }

// Is reports whether target is an error of the same kind, so that errors.Is(err, &Error{Kind: NotFound}) finds the
// errors of a kind. A target with a message matches only this message.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Kind == e.Kind && (t.Message == "" || t.Message == e.Message)
}

// NewNotFound returns the not-found error for the id, or name, of a clarification that is not in the ledger.
func NewNotFound(id string) *Error {
	return &Error{NotFound, fmt.Sprintf("clarification %s not found in ledger", id)}
}

// NewMaxRounds returns the error that a question reached the last of its max rounds and is escalated.
func NewMaxRounds(id string, rounds int) *Error {
	return &Error{MaxRoundsExceeded,
		fmt.Sprintf("%s reached max rounds (%d); it is escalated. %s", id, rounds, action(id))}
}
