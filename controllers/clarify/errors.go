package clarify

import (
	"fmt"
	"strings"
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

// Error begins with the kind and a colon.
func (e *Error) Error() string { return e.Kind + ": " + e.Message }

// Is makes errors.Is(err, &Error{Kind: NotFound}) find the errors of a kind.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Kind == e.Kind && (t.Message == "" || t.Message == e.Message)
}

func scopeError(from, to string, allowed []string) *Error {
	return &Error{ScopeViolation, fmt.Sprintf("agent '%s' cannot clarify with '%s'; allowed: [%s]",
		from, to, strings.Join(allowed, ", "))}
}

// NewNotFound is the error for an id or name that no clarification has.
func NewNotFound(id string) *Error {
	return &Error{NotFound, fmt.Sprintf("clarification %s not found in ledger", id)}
}

// NewMaxRounds is the error for a question after the last round.
func NewMaxRounds(id string, rounds int) *Error {
	return &Error{MaxRoundsExceeded,
		fmt.Sprintf("%s reached max rounds (%d); it is escalated. %s", id, rounds, action(id))}
}
