// Package proc tells whether the process that left something behind is still alive, although process numbers are
// used again.
//
// A process is named by three values: the boot and namespaces that its number counts in (the tag), the number, and
// the moment it was started. Two processes with equal tags can judge each other; of a process with another tag (another
// machine, container or boot) nothing is known, and callers must fall back to age.
package proc

import (
	"os"
	"sync"
)

// ID names one process for ever. The zero ID names none.
type ID struct {
	// Tag is equal for processes that can see each other: same boot, same pid and time namespaces. Empty where the
	// system does not tell.
	Tag string
	PID int
	// Start is when the process began, in the system's own unit and epoch; 0 is unknown. Only equality means anything.
	Start int64
}

// Self returns the calling process.
func Self() ID { return self() }

var self = sync.OnceValue(func() ID {
	pid := os.Getpid()
	start, _ := started(pid)
	return ID{Tag: tag(), PID: pid, Start: start}
})

// Start returns when the process of that number began, for use in an [ID], or 0 if there is none or it cannot be told.
func Start(pid int) int64 {
	start, _ := started(pid)
	return start
}

// Gone reports whether the process is certain to have ended: it has this process's tag, and its number is unused,
// used by a zombie, or by a process that started at another time. False when in doubt.
func (id ID) Gone() bool {
	if id.Tag == "" || id.PID <= 0 || id.Tag != Self().Tag {
		return false
	}
	if missing(id.PID) {
		return true
	}
	start, zombie := started(id.PID)
	return zombie || id.Start != 0 && start != 0 && start != id.Start
}
