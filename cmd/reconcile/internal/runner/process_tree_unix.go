//go:build unix

package runner

import (
	"errors"

	"golang.org/x/sys/unix"
)

// signalsOf returns the signals: a stopped process handles SIGTERM only after SIGCONT.
func signalsOf(force bool) []unix.Signal {
	if force {
		return []unix.Signal{unix.SIGKILL}
	}
	return []unix.Signal{unix.SIGTERM, unix.SIGCONT}
}

// signalGroup signals every process of a group. Processes without permission are still there later.
func signalGroup(pgid int, force bool) {
	if pgid <= 1 {
		return
	}
	for _, sig := range signalsOf(force) {
		unix.Kill(-pgid, sig) //nolint:errcheck // see above
	}
}

// groupLives reports whether the group of the reaped first process has members left.
func (t *tree) groupLives() bool { return !errors.Is(unix.Kill(-t.pid, 0), unix.ESRCH) }
