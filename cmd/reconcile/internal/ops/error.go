package ops

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine"
	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Code is the result of an operation. The command line uses it as the exit code.
type Code int

// The codes of operations.
const (
	OK          Code = 0
	Failure     Code = 1
	BadRequest  Code = 2
	Invalid     Code = 3  // a spec is invalid
	NotReady    Code = 4  // an object failed or is stalled, or a check failed
	Unsure      Code = 5  // nobody knows: a check did not run, or was not understood
	Busy        Code = 75 // try again
	Interrupted Code = 130
)

// Error is the error of an operation.
type Error struct {
	Code Code
	Err  error
}

func (e *Error) Error() string { return e.Err.Error() }
func (e *Error) Unwrap() error { return e.Err }

func badRequest(format string, args ...any) error {
	return &Error{Code: BadRequest, Err: fmt.Errorf(format, args...)}
}

// CodeOf returns the code of a single error; OK for nil.
func CodeOf(err error) Code {
	var own *Error
	var settings *engine.SettingsError
	var request interface {
		error
		BadRequest() // marks errors of the request
	}
	switch {
	case err == nil:
		return OK
	case errors.As(err, &own):
		return own.Code
	case errors.As(err, &request):
		return BadRequest
	case errors.Is(err, memstore.ErrInvalid):
		return BadRequest
	case errors.Is(err, state.ErrFolder), errors.As(err, &settings):
		return Invalid
	case errors.Is(err, context.Canceled):
		return Interrupted
	case errors.Is(err, gitrepo.ErrDenied):
		return Failure
	case errors.Is(err, state.ErrBusy), errors.Is(err, gitrepo.ErrBusy), errors.Is(err, gitrepo.ErrUnreachable),
		errors.Is(err, &clarify.Error{Kind: clarify.LockTimeout}), github.Later(err):
		return Busy
	}
	return Failure
}

// BadRequest marks an error of the request.
func (e *FieldError) BadRequest() {}

// typed converts an error to an *Error; nil stays nil.
func typed(err error) error {
	var own *Error
	if err == nil || errors.As(err, &own) {
		return err
	}
	return &Error{Code: CodeOf(err), Err: err}
}

// ProblemsError has the problems of specs that were not written.
type ProblemsError struct{ Problems []schemas.Problem }

func (e *ProblemsError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.Error()
	}
	return strings.Join(lines, "\n") + "\nnothing was written"
}

// lockTimeout converts a busy lock's error to an error of that kind with the next step; other errors are returned
// unchanged.
func lockTimeout(err error, next string) error {
	if !errors.Is(err, state.ErrBusy) {
		return err
	}
	why := strings.TrimPrefix(err.Error(), clarify.LockTimeout+": ")
	return &clarify.Error{Kind: clarify.LockTimeout, Message: why + "; " + next}
}

func (e *FieldError) Error() string { return e.Field + e.Text }

// FieldError describes the mistake in a field of a request. Each surface names the field in its own form.
type FieldError struct {
	Field string // the name in the request: min-score, k
	Text  string // the text after the name: " 2: write 0 to 1"
}

func badField(field, format string, args ...any) error {
	return &Error{Code: BadRequest, Err: &FieldError{field, fmt.Sprintf(format, args...)}}
}
