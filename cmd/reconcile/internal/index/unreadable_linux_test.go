package index_test

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

const nobody = 65534

// TestUnreadable: what may not be read is counted each time, and told of in one warning that names the first.
func TestUnreadable(t *testing.T) {
	r := newRig(t, nil)
	r.write("a.txt", "quokka\n")
	r.write("b.txt", "wombat\n")
	if err := os.Chmod(filepath.Dir(r.dir), 0o755); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(r.dir, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"a.txt", "b.txt"} {
		if err := os.Chmod(filepath.Join(r.dir, name), 0); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 {
		r.warned = nil
		back := asNobody(t)
		left := r.refresh().How.LeftOut
		back()
		if left.Unreadable != 2 {
			t.Errorf("%d files cannot be read, want 2", left.Unreadable)
		}
		if len(r.warned) != 1 || !strings.HasPrefix(r.warned[0], "2 files or folders cannot be read, and are left out of the index: ") ||
			!strings.Contains(r.warned[0], "a.txt") {
			t.Errorf("warned of %q", r.warned)
		}
	}
}

// asNobody has a test that runs as root meet the permissions of files as others do, on its own thread, until the function
// that it returns is called.
func asNobody(t *testing.T) func() {
	t.Helper()
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
