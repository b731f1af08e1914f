package runner

import (
	"fmt"
	"os"
	"sync"
	"syscall"
)

// exitStatus is the exit code.
type exitStatus int

// process is the first process of a run.
type process struct {
	pid    int
	handle *os.Process
	once   sync.Once
	status exitStatus
	err    error
}

// onlyName is false: Windows renames no open file.
func onlyName(os.FileInfo) bool { return false }

// spawn starts a program. The first three files become its standard ones; they stay open here.
func spawn(path string, argv []string, dir string, env []string, files []*os.File, _ *os.File) (*process, error) {
	h, err := os.StartProcess(path, argv, &os.ProcAttr{Dir: dir, Env: env, Files: files[:3],
		Sys: &syscall.SysProcAttr{CreationFlags: syscall.CREATE_NEW_PROCESS_GROUP}})
	if err != nil {
		return nil, err
	}
	return &process{pid: h.Pid, handle: h}, nil
}

// await returns when the process has ended.
func (p *process) await() {
	p.once.Do(func() {
		var s *os.ProcessState
		if s, p.err = p.handle.Wait(); p.err == nil {
			p.status = exitStatus(s.ExitCode())
		}
	})
}

// reap returns how the process ended.
func (p *process) reap() (exitStatus, error) {
	p.await()
	return p.status, p.err
}

func exitCode(s exitStatus) int { return int(s) }

func describeExit(s exitStatus) string { return fmt.Sprintf("exit code %d", s) }

// newPipe returns a pipe's reading and writing end.
func newPipe() (r, w *os.File, err error) { return os.Pipe() }

// newInput returns a pipe whose reading end is for a command.
func newInput() (r, w *os.File, err error) { return os.Pipe() }

func openNull() (*os.File, error) { return os.Open(os.DevNull) }

// readNow reads nothing: pipes have no deadlines here, so it is not used.
func readNow(uintptr, []byte) int { return 0 }

// keepPrivate does nothing: commands inherit only the given handles.
func keepPrivate() {}
