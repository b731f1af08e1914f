// Package filelock locks files that are open already, with gofrs/flock. The library opens files by their names; here it is made
// sure that what it locks is the file that the caller has opened below its root.
//
// A lock is free when it is unlocked, or when its process ends in whatever way. Commands that the process starts do not get it.
package filelock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"github.com/gofrs/flock"
)

// ErrReplaced says that the file has been removed, or that its name has become that of another one, since it was opened.
var ErrReplaced = errors.New("the file to lock was replaced")

// Wait locks the file of f for one holder, after everybody who waits already. It cannot be broken off.
func Wait(f *os.File) (*flock.Flock, error) {
	l := newLock(f, os.O_RDWR) // NFS has exclusive locks only on files that are open for writing
	for {
		if err := l.Lock(); !errors.Is(err, syscall.EINTR) {
			return check(l, f, err)
		}
	}
}

// Try is Wait without waiting: nil where the lock is taken.
func Try(f *os.File) (*flock.Flock, error) {
	l := newLock(f, os.O_RDWR)
	locked, err := l.TryLock()
	if err == nil && !locked {
		return nil, nil
	}
	return check(l, f, err)
}

// Held reports whether somebody holds the lock of the file of f. Those who ask do not disturb one another. It is also true
// where that cannot be told, such as of a file that was replaced.
func Held(f *os.File) bool {
	l := newLock(f, os.O_RDONLY)
	free, err := l.TryRLock()
	if err == nil && !free {
		return true
	}
	l, err = check(l, f, err)
	return err != nil || l.Unlock() != nil
}

// newLock never creates the file, which is there.
func newLock(f *os.File, flags int) *flock.Flock {
	return flock.New(stream(f.Name()), flock.SetFlag(flags|createStream))
}

// check returns a lock that was taken if it is one of the file of f; else it is given up.
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
