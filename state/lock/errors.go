package lock

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// ErrBusy is the cause of an error if another process holds the lock. A later attempt may succeed.
var ErrBusy = errors.New("lock is busy")

// ErrStolen is the cause of an error if another process took the lock, or may have. The caller must not write on the
// basis of its reads, but read and decide again.
var ErrStolen = errors.New("lock was lost")

// BusyError describes the holder of a lock. It wraps [ErrBusy].
type BusyError struct {
	Path  string        // the path of the locked file
	PID   int           // of the holder; 0 if not known
	Agent string        // the name of the holder
	Age   time.Duration // since it was locked; 0 if not known
	Hung  bool          // the holder is a live reconcile process that did not release the lock during the whole wait
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

func wrap(f *os.File) (*osFile, error) {
	fi, err := f.Stat()
	return &osFile{f, fi}, err
}

// busyGuard returns an error that names the holder of the guard: the process in L, if it has written L yet.
func busyGuard(d disk, path string, o Options) error {
	e := &BusyError{Path: path, Hung: true}
	if f, err := d.open(lockFile); err == nil {
		b := parseBody(f.content())
		f.close()
		e.PID, e.Agent, e.Age = b.PID, b.Agent, b.age(o.Now())
	}
	return e
}

func ignore(err, what error) error {
	if errors.Is(err, what) {
		return nil
	}
	return err
}
