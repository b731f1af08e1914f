package share

import (
	"time"

	"golang.org/x/sys/unix"
)

// uptime is how long ago the machine was started, with the time that it slept. It never jumps.
func uptime() (time.Duration, bool) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0, false
	}
	return time.Duration(t.Nano()), true
}
