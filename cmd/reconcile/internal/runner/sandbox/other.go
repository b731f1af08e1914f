//go:build !linux

package sandbox

import (
	"errors"
	"os"
	"runtime"
)

func (*Host) probe(level string) Support {
	return Support{Level: level, Missing: "it needs Linux, and this is " + runtime.GOOS}
}

// Command returns an error: nothing can be confined on this system.
func (*Host) Command(Policy, string, []string) (*Command, error) {
	return nil, errors.New("programs cannot be confined on this system")
}

// Command is a command that starts a confined program.
type Command struct {
	Path  string
	Argv  []string
	Files []*os.File
}

// Close closes the files.
func (*Command) Close() {}

// Started returns nil.
func (*Command) Started() error { return nil }

// Main does nothing on this system.
func Main([]string) {}
