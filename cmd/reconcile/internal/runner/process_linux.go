package runner

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// process is the first process of a run.
type process struct {
	pid int
	fd  int // pidfd; negative if not supported
	// supervisor is the process that started it; nil: this one did.
	supervisor *supervisor
}

func newProcess() *process { return &process{fd: -1} }

func (p *process) sysAttr(group *os.File) *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true, PidFD: &p.fd}
	if group != nil {
		attr.UseCgroupFD, attr.CgroupFD = true, int(group.Fd())
	}
	return attr
}

// await returns when the process has ended. It is not reaped yet: until reap is called, its number, which is also its
// group's, cannot be reused, so that signals to it are safe. It blocks no thread.
func (p *process) await() {
	if p.supervisor != nil {
		p.supervisor.await()
		return
	}
	if p.fd < 0 || !p.awaitEvent() {
		p.ended(0)
	}
}

// awaitEvent waits for the pidfd to become readable; false if that is not supported.
func (p *process) awaitEvent() bool {
	if unix.SetNonblock(p.fd, true) != nil {
		unix.Close(p.fd)
		return false
	}
	f := os.NewFile(uintptr(p.fd), "pidfd")
	defer f.Close()
	raw, err := f.SyscallConn()
	return err == nil && raw.Read(func(uintptr) bool { return p.ended(unix.WNOHANG) }) == nil
}

// ended reports whether the process has ended; without WNOHANG it waits for the end.
func (p *process) ended(options int) bool {
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_PID, p.pid, &info, unix.WEXITED|unix.WNOWAIT|options, nil)
		if !errors.Is(err, unix.EINTR) {
			return err != nil || info.Signo != 0
		}
	}
}

// reap removes the ended process from the system's table.
func (p *process) reap() (exitStatus, error) {
	if p.supervisor != nil {
		return p.supervisor.reap()
	}
	return wait4(p.pid)
}

// newPipe returns a pipe's reading and writing end. It is os.Pipe with half the system calls: the writing end is for a
// command, so it does not need deadlines.
func newPipe() (r, w *os.File, err error) { return openPipe(true) }

// newInput returns a pipe whose reading end is for a command. That end blocks: a command that reads while another process that is just
// starting still holds the writing end has to wait for the end of the input.
func newInput() (r, w *os.File, err error) { return openPipe(false) }

func openPipe(deadlines bool) (r, w *os.File, err error) {
	var fds [2]int
	if err := unix.Pipe2(fds[:], unix.O_CLOEXEC); err != nil {
		return nil, nil, os.NewSyscallError("pipe2", err)
	}
	if err := unix.SetNonblock(fds[0], deadlines); err != nil {
		unix.Close(fds[0])
		unix.Close(fds[1])
		return nil, nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fds[0]), "|0"), os.NewFile(uintptr(fds[1]), "|1"), nil
}

func openNull() (*os.File, error) { return openBlocking(os.DevNull, unix.O_RDONLY) }

// openBlocking opens a file for commands; it does not support deadlines.
func openBlocking(path string, flags int) (*os.File, error) {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}
