package state

import (
	"os"

	"golang.org/x/sys/windows"
)

// beyond is a byte that no file has: locks bind reading and writing here, and must not.
var beyond = windows.Overlapped{Offset: 0xfffffffe, OffsetHigh: 0x7fffffff}

// lockFile takes the lock on an open file that marks its process as alive. It is free when the file is closed, by
// whatever end the process comes to.
func lockFile(f *os.File) error {
	at := beyond
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK, 0, 1, 0, &at)
}

// isLocked reports whether another open file holds the lock of lockFile. Those who ask do not disturb one another.
func isLocked(f *os.File) bool {
	at := beyond
	return windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &at) != nil
}

// tryLockFile takes the lock on an open file unless another open file holds it.
func tryLockFile(f *os.File) bool {
	at := beyond
	const flags = windows.LOCKFILE_EXCLUSIVE_LOCK | windows.LOCKFILE_FAIL_IMMEDIATELY
	return windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &at) == nil
}
