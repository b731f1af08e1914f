package crashtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// tracer drives all processes of one run, on one thread.
type tracer struct {
	spec   Spec
	main   int
	tasks  map[int]*task // threads that live, by number
	dying  bool          // everything has been killed
	result Result
}

// task is one thread.
type task struct {
	begun bool
	call  int  // index in result.Calls of the call that it is in, from 1; 0 if none
	last  bool // everything is killed when that call returns
}

const options = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK |
	unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEEXEC | unix.PTRACE_O_TRACESECCOMP | unix.PTRACE_O_EXITKILL

// begin takes the command from its first stop, before its first instruction, to running under the filter.
func (t *tracer) begin() error {
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(t.main, &ws, syscall.WALL, nil); err != nil || !ws.Stopped() {
		return fmt.Errorf("wait for the first stop: %v, %w", ws, err)
	}
	if err := syscall.PtraceSetOptions(t.main, options); err != nil {
		return fmt.Errorf("set ptrace options: %w", err)
	}
	if err := install(t.main); err != nil {
		return err
	}
	return syscall.PtraceCont(t.main, 0)
}

// loop serves stops until all processes have ended.
func (t *tracer) loop(ctx context.Context) error {
	for {
		var ws syscall.WaitStatus
		// WNOTHREAD: other threads of the test have children of their own.
		pid, err := syscall.Wait4(-1, &ws, syscall.WALL|syscall.WNOTHREAD, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.ECHILD):
			return nil
		case err != nil:
			return fmt.Errorf("wait: %w", err)
		case ws.Stopped():
			t.stopped(pid, ws)
		default:
			t.ended(pid, ws)
		}
		if ctx.Err() != nil && !t.dying {
			t.killAll()
		}
	}
}

func (t *tracer) ended(pid int, ws syscall.WaitStatus) {
	delete(t.tasks, pid)
	if pid != t.main {
		return
	}
	t.result.Exit = -1
	if ws.Exited() {
		t.result.Exit = ws.ExitStatus()
	}
}

// stopped lets a thread go on. Errors of ptrace mean that it was killed meanwhile; its end will be reported.
func (t *tracer) stopped(pid int, ws syscall.WaitStatus) {
	k := t.tasks[pid]
	if k == nil {
		k = &task{}
		t.tasks[pid] = k
	}
	if t.dying {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		return
	}
	switch sig := ws.StopSignal(); {
	case sig == syscall.SIGTRAP|0x80:
		t.leave(pid, k)
	case sig == syscall.SIGTRAP && ws.TrapCause() == unix.PTRACE_EVENT_SECCOMP:
		t.enter(pid, k)
	case sig == syscall.SIGTRAP && ws.TrapCause() > 0, sig == syscall.SIGSTOP && !k.begun:
		k.begun = true
		_ = syscall.PtraceCont(pid, 0)
	default:
		_ = syscall.PtraceCont(pid, int(sig))
	}
}

func (t *tracer) killAll() {
	t.dying = true
	for pid := range t.tasks {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// enter handles a call before its execution, and strikes if it is the chosen one.
func (t *tracer) enter(pid int, k *task) {
	k.begun = true
	var regs syscall.PtraceRegs
	if syscall.PtraceGetRegs(pid, &regs) != nil {
		return
	}
	c, ok := t.describe(pid, &regs)
	if !ok {
		_ = syscall.PtraceCont(pid, 0)
		return
	}
	t.result.Calls = append(t.result.Calls, c)
	k.call = len(t.result.Calls)
	if t.spec.counts(c) {
		t.result.Points++
		if n := t.result.Points; n == t.spec.K || n > t.spec.K && t.spec.Stay && t.spec.K > 0 {
			t.result.Struck = true
			t.strike(pid, k, &regs)
		}
	}
	if !t.dying {
		_ = syscall.PtraceSyscall(pid, 0)
	}
}

func (t *tracer) strike(pid int, k *task, regs *syscall.PtraceRegs) {
	switch t.spec.Mode {
	case Kill:
		t.killAll() // a thread that is killed at this stop does not perform the call
	case Torn:
		t.halve(pid, regs)
		k.last = true
	case Fail:
		regs.Orig_rax = ^uint64(0) // no such call: it is skipped, and the result is what we say
		regs.Rax = uint64(-int64(t.spec.Errno))
		_ = syscall.PtraceSetRegs(pid, regs)
	}
}

// halve makes a write do half of its work. One with a vector becomes a plain one of half the first part.
func (t *tracer) halve(pid int, regs *syscall.PtraceRegs) {
	s := shapes[regs.Orig_rax]
	if s.size != 0 {
		*argument(regs, s.size) /= 2
	} else if iov := t.memory(pid, regs.Rsi, 16); len(iov) == 16 {
		nr := uint64(unix.SYS_WRITE)
		if s.name != "writev" {
			nr = unix.SYS_PWRITE64 // the offset is the fourth argument of both
		}
		regs.Orig_rax = nr
		regs.Rsi = le64(iov[:8])
		regs.Rdx = le64(iov[8:]) / 2
	}
	_ = syscall.PtraceSetRegs(pid, regs)
}

// leave notes the result of a call.
func (t *tracer) leave(pid int, k *task) {
	var regs syscall.PtraceRegs
	if k.call > 0 && syscall.PtraceGetRegs(pid, &regs) == nil {
		if e := -int64(regs.Rax); e > 0 && e < 4096 {
			t.result.Calls[k.call-1].Err = syscall.Errno(e)
		}
	}
	k.call = 0
	if k.last {
		t.killAll()
		return
	}
	_ = syscall.PtraceCont(pid, 0)
}

// describe reads the arguments of a call. It returns false for one that changes nothing below the root.
func (t *tracer) describe(pid int, regs *syscall.PtraceRegs) (Call, bool) {
	s, ok := shapes[regs.Orig_rax]
	c := Call{PID: pid, Name: s.name, Op: s.op}
	if !ok || s.op == SyncAll {
		return c, ok
	}
	var abs string
	if s.fd != 0 {
		abs = link(pid, "fd/"+strconv.Itoa(int(int32(*argument(regs, s.fd)))))
	} else {
		abs = t.path(pid, regs, s.dir, s.path)
	}
	c.Path = t.below(abs)
	if s.to != 0 {
		to := t.path(pid, regs, s.dir2, s.to)
		c.To = t.below(to)
		c.Idle = s.op == Link && exists(to)
	}
	switch s.op {
	case Mkdir:
		c.Idle = exists(abs)
	case Remove, Rename:
		c.Idle = !exists(abs)
	}
	if s.size != 0 {
		c.Size = int64(*argument(regs, s.size))
	}
	if c.Path == "" && c.To == "" || s.op == Create && !t.changes(pid, regs, s, abs) {
		return c, false
	}
	return c, true
}

// exists reports whether there is something at a path, also if nobody can tell.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// changes reports whether an open makes or empties a file.
func (t *tracer) changes(pid int, regs *syscall.PtraceRegs, s shape, abs string) bool {
	var flags uint64
	switch {
	case s.flags != 0:
		flags = *argument(regs, s.flags)
	case s.name == "openat2":
		if how := t.memory(pid, regs.Rdx, 8); len(how) == 8 {
			flags = le64(how)
		}
	default:
		return true
	}
	if flags&unix.O_TRUNC != 0 || flags&unix.O_TMPFILE == unix.O_TMPFILE {
		return true
	}
	_, err := os.Lstat(abs)
	return flags&unix.O_CREAT != 0 && err != nil
}

// path returns an absolute path. Links on the way are not followed.
func (t *tracer) path(pid int, regs *syscall.PtraceRegs, dir, arg int) string {
	p := t.text(pid, *argument(regs, arg))
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	at := "cwd"
	if dir != 0 {
		if fd := int32(*argument(regs, dir)); fd != unix.AT_FDCWD {
			at = "fd/" + strconv.Itoa(int(fd))
		}
	}
	return filepath.Join(link(pid, at), p)
}

func link(pid int, name string) string {
	to, err := os.Readlink("/proc/" + strconv.Itoa(pid) + "/" + name)
	if err != nil || !filepath.IsAbs(to) {
		return "/proc" // a pipe or the like: outside of any root
	}
	return to
}

// below makes a path relative to the root, "" if it is not in it.
func (t *tracer) below(abs string) string {
	if abs == t.spec.Root {
		return "."
	}
	rel, ok := strings.CutPrefix(abs, t.spec.Root+"/")
	if !ok {
		return ""
	}
	return rel
}

// text reads a string that ends in a zero byte.
func (t *tracer) text(pid int, at uint64) string {
	const page = 4096
	var out []byte
	for len(out) < unix.PathMax {
		part := t.memory(pid, at, int(page-at%page)) // the next page may not be there
		if i := bytes.IndexByte(part, 0); i >= 0 || len(part) == 0 {
			return string(append(out, part[:max(i, 0)]...))
		}
		out = append(out, part...)
		at += uint64(len(part))
	}
	return string(out)
}

func (t *tracer) memory(pid int, at uint64, n int) []byte {
	buf := make([]byte, n)
	local := []unix.Iovec{{Base: &buf[0], Len: uint64(n)}}
	n, err := unix.ProcessVMReadv(pid, local, []unix.RemoteIovec{{Base: uintptr(at), Len: n}}, 0)
	if err != nil {
		return nil
	}
	return buf[:n]
}

func le64(b []byte) uint64 {
	var v uint64
	for i := range 8 {
		v |= uint64(b[i]) << (8 * i)
	}
	return v
}

// argument points to the n-th argument, from 1.
func argument(regs *syscall.PtraceRegs, n int) *uint64 {
	switch n {
	case 1:
		return &regs.Rdi
	case 2:
		return &regs.Rsi
	case 3:
		return &regs.Rdx
	case 4:
		return &regs.R10
	}
	return &regs.R8
}
