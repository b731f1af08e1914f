package lock

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// noLinks is what linking says on a file system that has none, such as FAT.
const noLinks = windows.ERROR_INVALID_FUNCTION

func tryFlock(f *os.File) (bool, error) {
	err := lockRange(f, windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY)
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}

// flock waits for as long as it takes.
func flock(f *os.File) error { return lockRange(f, windows.LOCKFILE_EXCLUSIVE_LOCK) }

// lockRange locks a byte far behind the note, because Windows keeps others from reading a locked range.
func lockRange(f *os.File, flags uint32) error {
	at := windows.Overlapped{OffsetHigh: 1 << 20}
	return windows.LockFileEx(windows.Handle(f.Fd()), flags, 0, 1, 0, &at)
}
