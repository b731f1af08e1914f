package github

import (
	"errors"
	"fmt"
	"time"
)

// Errors of a Client. They are wrapped in what says which call failed and why, and found with errors.Is.
var (
	// ErrGone: GitHub says, in its own form, that there is no such thing (404 or 410), while the repository itself can
	// be seen. Never what a proxy answers, nor what a token that lost its access is told.
	ErrGone = errors.New("it is gone from GitHub")
	// ErrUnauthorized: there is no token, or it is not valid any more (401).
	ErrUnauthorized = errors.New("GitHub does not accept the token")
	// ErrForbidden: the token may not do this (403 that is not a limit), or the repository cannot be seen with it.
	ErrForbidden = errors.New("the token has no right to this on GitHub")
	// ErrInvalid: GitHub refuses what was sent (400, 409, 422); the same call will fail again.
	ErrInvalid = errors.New("GitHub refuses this")
	// ErrServer: GitHub failed (5xx) at every try.
	ErrServer = errors.New("GitHub fails to answer")
	// ErrUnreachable: no answer, or none in GitHub's form, at every try; nothing that may not be repeated was sent.
	ErrUnreachable = errors.New("GitHub cannot be reached")
	// ErrMoved: the repository was renamed or transferred; github.repo has to follow.
	ErrMoved = errors.New("it moved to another place on GitHub")
	// ErrTransferred: the repository is where it was, and the issue, or what was on it, is in another one now.
	ErrTransferred = errors.New("it was transferred to another repository on GitHub")
	// ErrLocked: the conversation on the issue is locked for the token's account (403).
	ErrLocked = errors.New("its conversation is locked on GitHub")
	// ErrNoIssues: the repository has no issues at all (410).
	ErrNoIssues = errors.New("issues are turned off in this repository on GitHub")
)

// Later reports whether err says only that now is a bad time: what was to be done stays as it is, and the next run does
// it. *Uncertain is such an error, too, for those who look before they do it again.
func Later(err error) bool {
	var limited *Limited
	var uncertain *Uncertain
	return errors.As(err, &limited) || errors.As(err, &uncertain) || errors.Is(err, ErrServer) || errors.Is(err, ErrUnreachable)
}

// Limited is the error of a call that GitHub will answer only later (429, or 403 with the marks of a limit). Until it
// is over nothing is sent.
type Limited struct {
	Until time.Time `json:"until"`
	Why   string    `json:"why"` // which limit, in GitHub's words

	guessed bool // GitHub did not say until when
}

func (e *Limited) Error() string {
	return fmt.Sprintf("GitHub's limit is reached until %s (%s); what is left is done by the next run",
		e.Until.UTC().Format(time.RFC3339), e.Why)
}

// Uncertain is the error of a call that creates something, and was sent, and whose answer was lost: it may have
// happened. Look before you repeat it.
type Uncertain struct {
	Call Call
	Err  error // what was seen instead of the answer
}

func (e *Uncertain) Error() string {
	return fmt.Sprintf("%s %s was sent, and its answer was lost: %v", e.Call.Method, e.Call.Path, e.Err)
}

// Unwrap returns what was seen instead of the answer.
func (e *Uncertain) Unwrap() error { return e.Err }

// HeadMoved is the error of CommitOnBranch when the branch is no longer at the expected head.
type HeadMoved struct {
	Branch, Expected string
}

func (e *HeadMoved) Error() string {
	return fmt.Sprintf("branch %s on GitHub is no longer at %s: fetch, decide again, commit on top of it", e.Branch, e.Expected)
}
