package runner

import (
	"errors"
	"slices"
	"syscall"
)

// fault is a failure of reconcile or of the machine, not of the command: it is reported as Broken, is not recorded, and
// uses up no attempt.
type fault struct{ err error }

func (f *fault) Error() string { return f.err.Error() }
func (f *fault) Unwrap() error { return f.err }

// asFault marks an error as a fault; nil stays nil, and errLeaseTaken, which has its own report, is unchanged.
func asFault(err error) error {
	if err == nil || errors.Is(err, errLeaseTaken) {
		return err
	}
	return &fault{err}
}

// machineErrors are system errors that no command causes: no space, a broken or read-only disk, too many files or
// processes, or too little memory.
var machineErrors = []error{
	syscall.ENOSPC, syscall.EDQUOT, syscall.EIO, syscall.EROFS, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.EAGAIN,
}

// faultIn returns the fault in err, either marked or a machine error, or nil.
func faultIn(err error) error {
	var f *fault
	if errors.As(err, &f) {
		return f
	}
	if slices.ContainsFunc(machineErrors, func(e error) bool { return errors.Is(err, e) }) {
		return &fault{err}
	}
	return nil
}
