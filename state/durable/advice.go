package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
)

// Advise adds advice, a hint at the next step, to an error of the file system. Any other error, and one with advice, is
// returned unchanged.
func Advise(err error) error {
	var before *advised
	hint := hint(err)
	if hint == "" || errors.As(err, &before) {
		return err
	}
	return &advised{err, hint}
}

// advised is an error with its next step.
type advised struct {
	err  error
	hint string
}

func (e *advised) Error() string { return e.err.Error() + " (" + e.hint + ")" }
func (e *advised) Unwrap() error { return e.err }

func hint(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return "the disk is full; what was there is unchanged: free some space and run again"
	case errors.Is(err, syscall.EDQUOT):
		return "your share of the disk is full; what was there is unchanged: free some space and run again"
	case errors.Is(err, syscall.EROFS):
		return "the file system is mounted read-only: remount it or check the disk for errors"
	case errors.Is(err, syscall.EIO):
		return "the disk reports an error; what was there is unchanged: check the disk, then run again"
	case errors.Is(err, fs.ErrPermission):
		return "check who owns the folder and what its mode is"
	}
	return ""
}

func describe(m fs.FileMode) string {
	switch {
	case m&fs.ModeSymlink != 0:
		return "symbolic link"
	case m.IsDir():
		return "folder"
	case m&fs.ModeNamedPipe != 0:
		return "named pipe"
	case m.IsRegular():
		return "file"
	}
	return "device or socket"
}

// fail returns an error with the path, the cause and, if known, the next step.
func fail(verb, path string, err error) error {
	return Advise(fmt.Errorf("%s %s: %w", verb, path, err))
}
