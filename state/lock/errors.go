package lock

import (
	"errors"
	"fmt"
	"time"
)

// ErrBusy is the cause of an error when somebody else holds the lock. What was wanted can be tried again later.
var ErrBusy = errors.New("lock is busy")

// ErrStolen is the cause of an error when somebody else took the lock from us, or may. Nothing may be written on the
// strength of what was read; read and decide again.
var ErrStolen = errors.New("lock was lost")

// BusyError says who holds a lock. It wraps [ErrBusy].
type BusyError struct {
	Path  string        // of the locked file
	PID   int           // of the holder; 0 if it does not tell
	Agent string        // as the holder calls itself
	Age   time.Duration // since it was locked; 0 if it does not tell
	Hung  bool          // the holder is one of us, alive, and did not let go in all the time that we waited
}

func (e *BusyError) Error() string {
	who := "another program"
	if e.PID != 0 {
		who = fmt.Sprintf("process %d", e.PID)
	}
	if e.Agent != "" {
		who += fmt.Sprintf(" (%s)", e.Agent)
	}
	if e.Age > 0 {
		who += fmt.Sprintf(" for %v", e.Age.Round(time.Millisecond))
	}
	next := "try again; a lock that nobody needs any more is taken after 30 seconds"
	if e.Hung {
		next = "if that process hangs, end it: its lock is free at once"
	}
	return fmt.Sprintf("%v: %s is locked by %s: %s", ErrBusy, e.Path, who, next)
}

func (e *BusyError) Unwrap() error { return ErrBusy }
