package share

import (
	"time"

	"golang.org/x/sys/unix"
)

// uptime returns the time since the machine's boot, including sleep. It never jumps.
func uptime() (time.Duration, bool) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return 0, false
	}
	return time.Duration(t.Nano()), true
}
