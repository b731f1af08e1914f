//go:build unix && !linux

package runner

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

func tryLock(f *os.File) error {
	for {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EWOULDBLOCK):
			return errLeaseTaken
		case err != nil:
			return fmt.Errorf("lock %s: %w", f.Name(), err)
		default:
			return claim(f)
		}
	}
}

// claim adds a record lock: it belongs to the process, and children do not inherit it. It distinguishes a live runner from
// the orphans of a killed one.
func claim(f *os.File) error {
	l := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &l); err != nil {
		return fmt.Errorf("claim %s: %w", f.Name(), err)
	}
	return nil
}

// claimed reports whether another process has claimed the file.
func claimed(f *os.File) bool {
	l := unix.Flock_t{Type: unix.F_WRLCK}
	return unix.FcntlFlock(f.Fd(), unix.F_GETLK, &l) == nil && l.Type != unix.F_UNLCK
}

// linked reports whether f still has a name.
func linked(f *os.File) bool {
	var st unix.Stat_t
	return unix.Fstat(int(f.Fd()), &st) == nil && st.Nlink > 0
}
