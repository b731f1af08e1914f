package crashtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// Spec is one run.
type Spec struct {
	Cmd  []string // program and arguments
	Dir  string   // where it runs; Root if empty
	Env  []string // its whole environment; the present one if nil
	Root string   // the folder whose changes count

	Mode  Mode
	K     int           // strike at the K-th call that counts for Mode, from 1
	Errno syscall.Errno // for Fail
	Stay  bool          // for Fail: all that come after fail too, as on a disk that stays full
	// Skip leaves calls out of the count; they are performed. May be nil.
	Skip func(Call) bool
	// Seen is what an undisturbed run does, if that is known.
	Seen []Call
}

// Result is what a run did.
type Result struct {
	Calls  []Call // in order of their beginning, with those that were skipped
	Points int    // how many calls counted for the mode
	Struck bool   // whether there was a K-th
	Exit   int    // exit code of the command; -1 if a signal ended it
	Stdout []byte
	Stderr []byte
}

// Run runs the command of a Spec below its root to its end, or to the crash that the Spec sets it. An error says that
// the engine failed, or that the context ended; then everything was killed. Several runs may go on at once.
func Run(ctx context.Context, s Spec) (Result, error) {
	root, err := filepath.EvalSymlinks(s.Root)
	if err == nil {
		root, err = filepath.Abs(root)
	}
	if err != nil {
		return Result{}, fmt.Errorf("crashtest: %w", err)
	}
	s.Root = root
	type answer struct {
		r   Result
		err error
	}
	var a answer
	onFreshThread(func() { a.r, a.err = run(ctx, s) })
	if a.err != nil {
		return a.r, fmt.Errorf("crashtest %s: %w", s.Cmd[0], a.err)
	}
	return a.r, nil
}

// onFreshThread runs f on a thread of its own that has no children: ptrace is between threads, and the tracer waits for
// whatever child its thread has. A thread that forked for another goroutine before is put aside meanwhile, and handed
// back afterwards; one that traced ends with its goroutine, and takes tracees along.
func onFreshThread(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		if !childless() {
			onFreshThread(f)
			runtime.UnlockOSThread()
			return
		}
		f()
	}()
	<-done
}

// childless reports whether the calling thread has no child, alive or ended.
func childless() bool {
	const look = unix.WEXITED | unix.WSTOPPED | unix.WNOHANG | unix.WNOWAIT | unix.WALL | unix.WNOTHREAD
	for {
		if err := unix.Waitid(unix.P_ALL, 0, nil, look, nil); !errors.Is(err, unix.EINTR) {
			return errors.Is(err, unix.ECHILD)
		}
	}
}

func run(ctx context.Context, s Spec) (Result, error) {
	stdout, err := memFile("stdout")
	if err != nil {
		return Result{}, err
	}
	defer stdout.Close()
	stderr, err := memFile("stderr")
	if err != nil {
		return Result{}, err
	}
	defer stderr.Close()
	cmd := exec.Command(s.Cmd[0], s.Cmd[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = s.Dir, s.Env, stdout, stderr
	if cmd.Dir == "" {
		cmd.Dir = s.Root
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		return Result{}, err
	}
	t := &tracer{spec: s, main: cmd.Process.Pid, tasks: map[int]*task{cmd.Process.Pid: {begun: true}}}
	defer cmd.Process.Release()
	err = t.begin()
	if err != nil {
		t.killAll()
	}
	stop := context.AfterFunc(ctx, func() { _ = syscall.Kill(t.main, syscall.SIGKILL) })
	defer stop()
	err = errors.Join(err, t.loop(ctx), ctx.Err())
	t.result.Stdout, t.result.Stderr = contents(stdout), contents(stderr)
	return t.result, err
}

// memFile creates a file in memory, so that output needs neither a reader of a pipe nor space on disk.
func memFile(name string) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("memfd: %w", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

func contents(f *os.File) []byte {
	var b bytes.Buffer
	_, _ = io.Copy(&b, io.NewSectionReader(f, 0, 1<<40))
	return b.Bytes()
}
