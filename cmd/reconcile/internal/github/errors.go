package github

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"
)

// Errors of a Client. They are wrapped with the call and the cause; use errors.Is.
var (
	// ErrGone: GitHub reports, in its own form, that the object does not exist (404 or 410), and the repository is visible. It
	// is never returned for the answer of a proxy, nor for a token without access.
	ErrGone = errors.New("it is gone from GitHub")
	// ErrUnauthorized: the token is missing or invalid (401).
	ErrUnauthorized = errors.New("GitHub does not accept the token")
	// ErrForbidden: the token lacks the permission (403 that is not a limit), or cannot see the repository.
	ErrForbidden = errors.New("the token has no right to this on GitHub")
	// ErrInvalid: GitHub rejects the request (400, 409, 422); the same call will fail again.
	ErrInvalid = errors.New("GitHub refuses this")
	// ErrServer: GitHub failed (5xx) at every try.
	ErrServer = errors.New("GitHub fails to answer")
	// ErrUnreachable: no answer, or none in GitHub's form, at every try; no call that must not be repeated was sent.
	ErrUnreachable = errors.New("GitHub cannot be reached")
	// ErrMoved: the repository was renamed or transferred; update github.repo.
	ErrMoved = errors.New("it moved to another place on GitHub")
	// ErrTransferred: the repository is unchanged, but the issue was transferred to another repository.
	ErrTransferred = errors.New("it was transferred to another repository on GitHub")
	// ErrLocked: the conversation on the issue is locked for the token's account (403).
	ErrLocked = errors.New("its conversation is locked on GitHub")
	// ErrNoIssues: issues are disabled in the repository (410).
	ErrNoIssues = errors.New("issues are turned off in this repository on GitHub")
)

// Later reports whether err is temporary: the operation is unchanged, and the next run retries it. *Uncertain is temporary,
// too, for callers that look before they retry.
func Later(err error) bool {
	var limited *Limited
	var uncertain *Uncertain
	return errors.As(err, &limited) || errors.As(err, &uncertain) || errors.Is(err, ErrServer) || errors.Is(err, ErrUnreachable)
}

// Limited reports that GitHub will answer only later (429, or 403 with the marks of a limit). Nothing is sent before the
// limit ends.
type Limited struct {
	Until time.Time `json:"until"`
	Why   string    `json:"why"` // which limit, in GitHub's words

	guessed bool // GitHub did not say until when
}

func (e *Limited) Error() string {
	return fmt.Sprintf("GitHub's limit is reached until %s (%s); what is left is done by the next run",
		e.Until.UTC().Format(time.RFC3339), e.Why)
}

// Uncertain reports that a creating call was sent and its answer was lost: it may have succeeded. Look before you repeat
// it.
type Uncertain struct {
	Call Call
	Err  error // the error received instead of the answer
}

func (e *Uncertain) Error() string {
	return fmt.Sprintf("%s %s was sent, and its answer was lost: %v", e.Call.Method, e.Call.Path, e.Err)
}

// Unwrap returns the Err of an uncertain call, which was received instead of the answer.
func (e *Uncertain) Unwrap() error { return e.Err }

// HeadMoved reports that the branch is no longer at the head that CommitOnBranch expected.
type HeadMoved struct {
	Branch, Expected string
}

func (e *HeadMoved) Error() string {
	return fmt.Sprintf("branch %s on GitHub is no longer at %s: fetch, decide again, commit on top of it", e.Branch, e.Expected)
}

// unwrapped unwraps an error of the wire.
func unwrapped(err error) error {
	var outer *url.Error
	var typ *json.UnmarshalTypeError
	switch {
	case errors.As(err, &outer):
		return outer.Err
	case errors.As(err, &typ):
		return fmt.Errorf("GitHub's answer is not of the form that it describes (%v): %w", err, ErrServer)
	}
	return err
}
