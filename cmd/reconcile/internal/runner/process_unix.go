//go:build unix

package runner

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// exitStatus is the system's status of an ended process.
type exitStatus = syscall.WaitStatus

// spawn starts a program in its own session, and thereby process group: signals reach all of it, and a password prompt on
// the terminal fails instead of stopping. files become its descriptors 0, 1, 2, …; they stay open here. It starts in a control group;
// nil is that of this process.
func spawn(path string, argv []string, dir string, env []string, files []*os.File, group *os.File) (*process, error) {
	p := newProcess()
	attr := syscall.ProcAttr{Dir: dir, Env: env, Files: make([]uintptr, len(files)), Sys: p.sysAttr(group)}
	defer runtime.KeepAlive(group)
	for i, f := range files {
		attr.Files[i] = f.Fd()
	}
	defer runtime.KeepAlive(files)
	var err error
	if p.pid, err = forkExec(path, argv, &attr); err != nil {
		return nil, err
	}
	return p, nil
}

// forkExec starts the process of a command. A program that was written a moment ago cannot be executed while a process that started
// meanwhile still holds it open for writing, which lasts until that one executes its own program: then it tries again.
func forkExec(path string, argv []string, attr *syscall.ProcAttr) (pid int, err error) {
	for wait := time.Millisecond; ; wait *= 2 {
		pid, err = syscall.ForkExec(path, argv, attr)
		if !errors.Is(err, syscall.ETXTBSY) || wait > 256*time.Millisecond {
			return pid, err
		}
		time.Sleep(wait)
	}
}

// onlyName reports whether a file has exactly one name.
func onlyName(fi os.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && st.Nlink == 1
}

// keepPrivate keeps commands from inheriting descriptors that this process inherited beyond its standard streams: a make's
// job server, sockets and locks of its parent. Files that this program opens itself are never inherited.
func keepPrivate() {
	for _, dir := range []string{"/proc/self/fd", "/dev/fd"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if fd, err := strconv.Atoi(e.Name()); err == nil && fd > 2 {
				unix.CloseOnExec(fd) // harmless if closed by now
			}
		}
		return
	}
}

// wait4 waits for the process and reaps it.
func wait4(pid int) (ws exitStatus, err error) {
	for {
		_, err = syscall.Wait4(pid, &ws, 0, nil)
		if !errors.Is(err, syscall.EINTR) {
			return ws, err
		}
	}
}

// exitCode returns the code as a shell does: 128 plus the signal's number if a signal ended the command.
func exitCode(ws exitStatus) int {
	if ws.Signaled() {
		return 128 + int(ws.Signal())
	}
	return ws.ExitStatus()
}

// describeExit describes how a command failed.
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

// readNow reads the available bytes, without waiting; 0 or less without data.
func readNow(fd uintptr, b []byte) int {
	n, err := unix.Read(int(fd), b)
	if err != nil {
		return 0
	}
	return n
}
