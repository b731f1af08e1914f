//go:build !linux

package share

import "time"

// uptime is how long ago the machine was started; these systems have no such clock that two processes could compare.
func uptime() (time.Duration, bool) { return 0, false }
