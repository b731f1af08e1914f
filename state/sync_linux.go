package state

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncData makes the content of a file, and its size, durable.
func syncData(f *os.File) error { return unix.Fdatasync(int(f.Fd())) }

// syncDir makes the names in an open folder durable.
func syncDir(d *os.File) error { return d.Sync() }
