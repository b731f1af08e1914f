//go:build unix

package state

import (
	"os"

	"golang.org/x/sys/unix"
)

// lockFile takes the lock on an open file that marks its process as alive. It is free when the file is closed, by
// whatever end the process comes to.
func lockFile(f *os.File) error { return unix.Flock(int(f.Fd()), unix.LOCK_EX) }

// isLocked reports whether another open file holds the lock of lockFile. Those who ask do not disturb one another.
func isLocked(f *os.File) bool { return unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB) != nil }

// tryLockFile takes the lock on an open file unless another open file holds it.
func tryLockFile(f *os.File) bool { return unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil }
