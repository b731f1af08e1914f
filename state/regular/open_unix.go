//go:build unix

package regular

import (
	"errors"

	"golang.org/x/sys/unix"
)

const (
	// nonBlocking keeps an open from waiting for the other end of a pipe.
	nonBlocking = unix.O_NONBLOCK
	// folderOnly makes the system open only folders.
	folderOnly = unix.O_DIRECTORY
)

// noFile reports whether the system refused to open a path because of its type: a pipe without a reader, a socket, a
// device without a driver, or a folder opened for writing.
func noFile(err error) bool {
	return errors.Is(err, unix.ENXIO) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EISDIR)
}
