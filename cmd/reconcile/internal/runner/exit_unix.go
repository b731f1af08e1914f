//go:build unix

package runner

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// nonblock keeps an open from waiting for a pipe's other end.
const nonblock = unix.O_NONBLOCK

// exitCode is the code as a shell gives it: 128 plus the signal's number when a signal ended the command.
func exitCode(s *os.ProcessState) *int {
	code := s.ExitCode()
	if ws, ok := s.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		code = 128 + int(ws.Signal())
	}
	return &code
}

// describeExit says how a command failed.
func describeExit(s *os.ProcessState) string {
	ws, ok := s.Sys().(syscall.WaitStatus)
	switch {
	case ok && ws.Signaled() && ws.Signal() == syscall.SIGKILL:
		return "ended by SIGKILL from outside; perhaps the system was out of memory"
	case ok && ws.Signaled():
		return fmt.Sprintf("ended by %s", unix.SignalName(ws.Signal()))
	case s.ExitCode() == 127:
		return "exit code 127: a program in it was not found"
	}
	return fmt.Sprintf("exit code %d", s.ExitCode())
}

// readNow reads what is there, without waiting; 0 or less when nothing is.
func readNow(fd uintptr, b []byte) int {
	n, err := unix.Read(int(fd), b)
	if err != nil {
		return 0
	}
	return n
}
