package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
)

// The exit codes; scripts rely on them.
const (
	exitOK          = int(ops.OK)
	exitFailure     = int(ops.Failure)
	exitUsage       = int(ops.BadRequest)
	exitInvalid     = int(ops.Invalid)
	exitNotReady    = int(ops.NotReady)
	exitUnsure      = int(ops.Unsure)
	exitBusy        = int(ops.Busy) // EX_TEMPFAIL of sysexits.h
	exitDriver      = 129           // above 128, which git treats as an error of a merge driver and not as conflicts
	exitInterrupted = int(ops.Interrupted)
)

// exitCodes explains the codes, in order of precedence.
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
	{exitNotReady, "some object failed or is stalled, or a check failed"},
	{exitUnsure, "a check is unknown: it did not run, or its output was not understood"},
	{exitOK, "everything is ready, or waits for someone as it should"},
}

// exitHelp returns the table for --help.
func exitHelp() string {
	var b strings.Builder
	b.WriteString("Exit codes (when several apply, the first of this list):\n")
	for _, e := range exitCodes {
		fmt.Fprintf(&b, "  %-4d %s\n", e.code, e.meaning)
	}
	return b.String()
}

// exitCode returns the code of an error. Of joined errors, the code that is first in exitCodes wins.
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

// codeOf returns the code of a single error.
func codeOf(err error) int {
	var v *verdict
	var driver *driverError
	switch {
	case errors.As(err, &driver):
		return exitDriver
	case errors.As(err, &v):
		return v.code
	}
	return int(ops.CodeOf(err))
}

// leaves splits errors that errors.Join has joined; nil has none. Duplicate texts are removed.
func leaves(err error) []error {
	if err == nil {
		return nil
	}
	if failed, ok := err.(*ops.Error); ok {
		if parts := leaves(failed.Err); len(parts) > 1 {
			return parts
		}
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || err.Error() != errors.Join(joined.Unwrap()...).Error() {
		return []error{withFlag(err)} // a single error, which may wrap several causes
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

// withFlag names the field of an error by its flag.
func withFlag(err error) error {
	wrong, ok := errors.AsType[*ops.FieldError](err)
	if !ok {
		return err
	}
	flag := "--" + wrong.Field
	if len(wrong.Field) == 1 {
		flag = "-" + wrong.Field
	}
	return badUsage("%s", strings.Replace(err.Error(), wrong.Error(), flag+wrong.Text, 1))
}

// badUsage is an error of the command line; the text says what to write instead.
func badUsage(format string, args ...any) error {
	return &ops.Error{Code: ops.BadRequest, Err: fmt.Errorf(format, args...)}
}

// verdict is an exit code whose reason was already printed as the command's result.
type verdict struct{ code int }

func (v *verdict) Error() string { return fmt.Sprintf("exit code %d", v.code) }

// exitWith returns the verdict for a code; nil for 0.
func exitWith(code int) error {
	if code == exitOK {
		return nil
	}
	return &verdict{code: code}
}

// driverError is a failed merge. Its exit code is above 128: git treats 1 to 128 as conflicts, with OURS as the result.
type driverError struct{ err error }

func (e *driverError) Error() string { return e.err.Error() }

func (e *driverError) Unwrap() error { return e.err }

// unlessGone returns err, or nil if it says that the reader of stdout has gone.
func unlessGone(err error) error {
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}
