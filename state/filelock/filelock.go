// Package filelock locks open files with gofrs/flock. The library opens files by name; this package ensures that it
// locks the file that the caller has opened below its root.
//
// A lock is released by an unlock or by the end of its process. Commands that the process starts do not inherit it.
package filelock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/gofrs/flock"
)

// ErrReplaced says that the file was removed or replaced since it was opened.
var ErrReplaced = errors.New("the file to lock was replaced")

// Wait locks the open file f exclusively, with flock, and waits until all earlier waiters have released it. It cannot be
// canceled.
func Wait(f *os.File) (*flock.Flock, error) {
	l := newLock(f, os.O_RDWR) // NFS requires files that are open for writing
	for {
		if err := l.Lock(); !errors.Is(err, syscall.EINTR) {
			return check(l, f, err)
		}
	}
}

// Try locks the open file f exclusively, with flock, or returns nil at once if it is locked.
func Try(f *os.File) (*flock.Flock, error) {
	l := newLock(f, os.O_RDWR)
	locked, err := l.TryLock()
	if err == nil && !locked {
		return nil, nil
	}
	return check(l, f, err)
}

// Held reports whether another holder has the lock of the file f, by trying to get a read lock of it. Concurrent calls do
// not disturb each other. It also returns true if that is not known, for example for a replaced file.
func Held(f *os.File) bool {
	l := newLock(f, os.O_RDONLY)
	free, err := l.TryRLock()
	if err == nil && !free {
		return true
	}
	l, err = check(l, f, err)
	return err != nil || l.Unlock() != nil
}

// newLock does not create the file, which exists.
func newLock(f *os.File, flags int) *flock.Flock {
	return flock.New(stream(f.Name()), flock.SetFlag(flags|createStream))
}

// check returns the lock if it is on the file of f; otherwise it releases it.
func check(l *flock.Flock, f *os.File, err error) (*flock.Flock, error) {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("lock %s: %w", f.Name(), ErrReplaced)
	case err != nil:
		return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
	}
	locked, err := l.Stat()
	open, err2 := f.Stat()
	if err = errors.Join(err, err2); err == nil && !os.SameFile(locked, open) {
		err = ErrReplaced
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("lock %s: %w", f.Name(), err), l.Unlock())
	}
	return l, nil
}
