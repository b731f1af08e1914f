package proc_test

import (
	"testing"

	"golang.org/x/sys/unix"
)

// waitZombie returns when the child has ended, without taking its exit status.
func waitZombie(t *testing.T, pid int) bool {
	t.Helper()
	if err := unix.Waitid(unix.P_PID, pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	return true
}
