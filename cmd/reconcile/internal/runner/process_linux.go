package runner

import (
	"errors"

	"golang.org/x/sys/unix"
)

// await returns when the process has ended. It is not reaped yet: until reap is called, its number, which is also its
// group's, cannot become another's, so that signals to it are safe.
func (p *process) await() {
	for {
		err := unix.Waitid(unix.P_PID, p.pid(), nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return
		}
	}
}
