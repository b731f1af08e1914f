//go:build unix

package runner

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// exitStatus is what the system says of the end of a process.
type exitStatus = syscall.WaitStatus

// spawn starts a program in a session, and thereby a process group, of its own: signals reach all of it, and what asks
// the terminal for a password fails instead of stopping. files become its descriptors 0, 1, 2, …; they stay open here.
func spawn(path string, argv []string, dir string, env []string, files []*os.File) (*process, error) {
	p := newProcess()
	attr := syscall.ProcAttr{Dir: dir, Env: env, Files: make([]uintptr, len(files)), Sys: p.sysAttr()}
	for i, f := range files {
		attr.Files[i] = f.Fd()
	}
	defer runtime.KeepAlive(files)
	pid, err := syscall.ForkExec(path, argv, &attr)
	if err != nil {
		return nil, err
	}
	p.pid = pid
	return p, nil
}

// onlyName reports whether a file has one name, as the system told of it.
func onlyName(fi os.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && st.Nlink == 1
}

// keepPrivate keeps commands from inheriting what this process inherited beyond its standard streams: a make's job server,
// sockets and locks of whoever started it. What this program opens itself is never inherited.
func keepPrivate() {
	for _, dir := range []string{"/proc/self/fd", "/dev/fd"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
				unix.CloseOnExec(fd) // one that is closed by now does no harm
			}
		}
		return
	}
}

// wait4 waits for the process and takes it off the system's table.
func wait4(pid int) (ws exitStatus, err error) {
	for {
		_, err = syscall.Wait4(pid, &ws, 0, nil)
		if !errors.Is(err, syscall.EINTR) {
			return ws, err
		}
	}
}

// exitCode is the code as a shell gives it: 128 plus the signal's number when a signal ended the command.
func exitCode(ws exitStatus) int {
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}

// describeExit says how a command failed.
func describeExit(ws exitStatus) string {
	switch {
	case ws.Signaled() && ws.Signal() == syscall.SIGKILL:
		return "ended by SIGKILL from outside; perhaps the system was out of memory"
	case ws.Signaled():
		return fmt.Sprintf("ended by %s", unix.SignalName(ws.Signal()))
	case ws.ExitStatus() == 127:
		return "exit code 127: a program in it was not found"
	}
	return fmt.Sprintf("exit code %d", ws.ExitStatus())
}

// readNow reads what is there, without waiting; 0 or less when nothing is.
func readNow(fd uintptr, b []byte) int {
	n, err := unix.Read(int(fd), b)
	if err != nil {
		return 0
	}
	return n
}
