package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/state"
)

// The exit codes; scripts rely on them.
const (
	exitOK          = 0
	exitFailure     = 1
	exitUsage       = 2
	exitInvalid     = 3
	exitNotReady    = 4
	exitBusy        = 75  // EX_TEMPFAIL of sysexits.h
	exitDriver      = 129 // above 128, which git takes for an error of a merge driver and not for conflicts
	exitInterrupted = 130
)

// exitCodes explains the codes, in the order in which they win when several apply.
var exitCodes = []struct {
	code    int
	meaning string
}{
	{exitUsage, "the command line is wrong"},
	{exitFailure, "the command failed"},
	{exitDriver, "merge-driver failed, and left the file as it was"},
	{exitInterrupted, "interrupted"},
	{exitBusy, "the tree is busy, or its remote or GitHub is away, try again"},
	{exitInvalid, "some spec is invalid"},
	{exitNotReady, "some object failed or is stalled"},
	{exitOK, "everything is ready, or waits for someone as it should"},
}

// exitHelp is the table as --help prints it.
func exitHelp() string {
	var b strings.Builder
	b.WriteString("Exit codes (when several apply, the first of this list):\n")
	for _, e := range exitCodes {
		fmt.Fprintf(&b, "  %-4d %s\n", e.code, e.meaning)
	}
	return b.String()
}

// exitCode maps an error to a code. Of joined errors the one whose code stands first in exitCodes wins.
func exitCode(err error) int {
	best := len(exitCodes) - 1
	for _, leaf := range leaves(err) {
		code := codeOf(leaf)
		i := slices.IndexFunc(exitCodes, func(e struct {
			code    int
			meaning string
		}) bool {
			return e.code == code
		})
		if i >= 0 && i < best {
			best = i
		}
	}
	return exitCodes[best].code
}

// codeOf maps one error that joins no others.
func codeOf(err error) int {
	var usage *usageError
	var v *verdict
	var driver *driverError
	var request interface {
		error
		BadRequest() // of errors of the engine about what was asked for
	}
	switch {
	case errors.As(err, &driver):
		return exitDriver
	case errors.As(err, &usage), errors.As(err, &request):
		return exitUsage
	case errors.As(err, &v):
		return v.code
	case errors.Is(err, state.ErrFolder):
		return exitInvalid
	case errors.Is(err, context.Canceled):
		return exitInterrupted
	case errors.Is(err, gitrepo.ErrDenied):
		return exitFailure
	case errors.Is(err, state.ErrBusy), errors.Is(err, gitrepo.ErrBusy), errors.Is(err, gitrepo.ErrUnreachable),
		errors.Is(err, &clarify.Error{Kind: clarify.LockTimeout}), github.Later(err):
		return exitBusy
	}
	return exitFailure
}

// leaves takes errors apart that errors.Join has joined; nil has none. Equal texts are kept once.
func leaves(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || err.Error() != errors.Join(joined.Unwrap()...).Error() {
		return []error{err} // one error, of perhaps several causes in words of its own
	}
	var out []error
	for _, e := range joined.Unwrap() {
		for _, leaf := range leaves(e) {
			if !slices.ContainsFunc(out, func(o error) bool { return o.Error() == leaf.Error() }) {
				out = append(out, leaf)
			}
		}
	}
	return out
}

// usageError is a wrong command line: exit code 2.
type usageError struct{ msg string }

func (e *usageError) Error() string { return e.msg }

// badUsage makes a usageError; the text says what is wrong and what to write instead.
func badUsage(format string, args ...any) error {
	return &usageError{msg: fmt.Sprintf(format, args...)}
}

// verdict is an exit code whose reason is already printed as the command's result.
type verdict struct{ code int }

func (v *verdict) Error() string { return fmt.Sprintf("exit code %d", v.code) }

// exitWith returns the verdict for a code; nil for 0.
func exitWith(code int) error {
	if code == exitOK {
		return nil
	}
	return &verdict{code: code}
}
