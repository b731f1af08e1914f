// Package proc reports whether a process that left something behind is still alive, although process IDs are reused.
//
// A process is identified by three values: the boot and namespaces of its process ID (the tag), the ID, and the start
// time. Processes with equal tags can check each other; about a process with another tag (another machine, container or
// boot) nothing is known, and callers must fall back to age.
package proc

import (
	"os"
	"sync"
)

// ID identifies one process for ever. The zero ID identifies none.
type ID struct {
	// Tag is equal for processes that can see each other: same boot, same pid and time namespaces. Empty on systems
	// without this information.
	Tag string
	PID int
	// Start is the start time of the process, in the system's own unit and epoch; 0: not known. Only equality is
	// meaningful.
	Start int64
}

// Self returns the ID of the calling process: its tag, pid and start time.
func Self() ID { return self() }

var self = sync.OnceValue(func() ID {
	pid := os.Getpid()
	start, _ := started(pid)
	return ID{Tag: tag(), PID: pid, Start: start}
})

// Start returns when the process with this pid was started, in the unit of an [ID]; 0 if it does not exist or is not known.
func Start(pid int) int64 {
	start, _ := started(pid)
	return start
}

// Gone reports whether the process has certainly ended: it has this process's tag, and its ID is unused, or used by a
// zombie or by a process with another start time. False when in doubt.
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
