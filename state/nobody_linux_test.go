package state

import (
	"os"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// asNobody has a test that runs as root meet the permissions of files as others do, on its own thread, until the function
// that it returns is called.
func asNobody(t *testing.T) func() {
	t.Helper()
	const nobody = 65534
	if os.Geteuid() != 0 {
		return func() {}
	}
	runtime.LockOSThread()
	was, err := unix.SetfsuidRetUid(nobody)
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		if _, err := unix.SetfsuidRetUid(was); err != nil {
			t.Error(err)
		}
		runtime.UnlockOSThread()
	}
}
