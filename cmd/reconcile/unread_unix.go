//go:build unix

package main

import (
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// unread reports whether w is a pipe without a reader. Otherwise only writing finds out.
func unread(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	conn, err := f.SyscallConn()
	if err != nil {
		return false
	}
	gone := false
	err = conn.Control(func(fd uintptr) {
		poll := []unix.PollFd{{Fd: int32(fd)}} // errors and hang-ups are always reported
		n, err := unix.Poll(poll, 0)
		gone = err == nil && n == 1 && poll[0].Revents&(unix.POLLERR|unix.POLLHUP) != 0
	})
	return err == nil && gone
}
