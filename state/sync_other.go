//go:build !linux

package state

import (
	"os"
	"runtime"
)

// syncData makes the content of a file, and its size, durable.
func syncData(f *os.File) error { return f.Sync() }

// syncDir makes the names in an open folder durable, if the system supports it.
func syncDir(d *os.File) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	return d.Sync()
}
