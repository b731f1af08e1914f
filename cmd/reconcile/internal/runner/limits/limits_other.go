//go:build !linux

package limits

import (
	"errors"
	"runtime"
)

// canLimitProcess is false: the system has no limit of a process that counts for the memory that programs ask for.
const canLimitProcess = false

func newGroup(Bounds) (*Limit, error) { return nil, errors.New(runtime.GOOS + " has none") }

func (l *Limit) killed() bool { return false }

// Close does nothing.
func (l *Limit) Close() {}
