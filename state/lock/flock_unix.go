//go:build unix

package lock

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// noLinks is what link says on a file system that has none (link(2)).
const noLinks = unix.EPERM

func tryFlock(f *os.File) (bool, error) {
	err := control(f, unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// flock waits for as long as it takes. The kernel serves those who wait in order.
func flock(f *os.File) error { return control(f, unix.LOCK_EX) }

func control(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
