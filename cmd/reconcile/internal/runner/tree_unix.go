//go:build unix

package runner

import (
	"errors"

	"golang.org/x/sys/unix"
)

// signalsOf: a stopped process does not see SIGTERM before it goes on.
func signalsOf(force bool) []unix.Signal {
	if force {
		return []unix.Signal{unix.SIGKILL}
	}
	return []unix.Signal{unix.SIGTERM, unix.SIGCONT}
}

// signalGroup tells every process of a group. That some are not ours to tell shows when they are still there later.
func signalGroup(pgid int, force bool) {
	if pgid <= 1 {
		return
	}
	for _, sig := range signalsOf(force) {
		unix.Kill(-pgid, sig) //nolint:errcheck // see above
	}
}

// groupLives reports whether the group of the first process, which has been reaped, has members left.
func (t *tree) groupLives() bool { return !errors.Is(unix.Kill(-t.pid, 0), unix.ESRCH) }
