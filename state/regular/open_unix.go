//go:build unix

package regular

import (
	"errors"

	"golang.org/x/sys/unix"
)

const (
	// nonBlocking keeps an open from waiting for the other end of a pipe.
	nonBlocking = unix.O_NONBLOCK
	// folderOnly has the system open a folder or nothing.
	folderOnly = unix.O_DIRECTORY
)

// noFile reports whether the system refused to open something because of what it is: a pipe that nobody reads, a
// socket, a device without a driver, or a folder that was to be written.
func noFile(err error) bool {
	return errors.Is(err, unix.ENXIO) || errors.Is(err, unix.ENODEV) || errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EISDIR)
}
