//go:build !linux

package sandbox

import (
	"errors"
	"runtime"
)

func (*Host) probe(level string) Support {
	return Support{Level: level, Missing: "it needs Linux, and this is " + runtime.GOOS}
}

// Start returns an error: nothing can be confined on this system.
func (*Host) Start(Policy, string, []string, Spawn) (*Confined, error) {
	return nil, errors.New("programs cannot be confined on this system")
}

// Confined is a program that was started by [Host.Start].
type Confined struct{}

// Executed returns nil.
func (*Confined) Executed(string) error { return nil }

// Close does nothing.
func (*Confined) Close() {}

// Main does nothing on this system.
func Main([]string) {}
