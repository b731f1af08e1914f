//go:build unix && !linux

package runner

import (
	"os"
	"sync"
	"syscall"
)

// process is the first process of a run.
type process struct {
	pid    int
	once   sync.Once
	status exitStatus
	err    error
}

func newProcess() *process { return new(process) }

func (p *process) sysAttr(*os.File) *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// await returns when the process has ended. It reaps it: a signal to its group just after that could reach another one, but
// only once the system has used all process numbers.
func (p *process) await() { p.once.Do(func() { p.status, p.err = wait4(p.pid) }) }

// reap returns how the process ended.
func (p *process) reap() (exitStatus, error) {
	p.await()
	return p.status, p.err
}

// newPipe returns a pipe's reading and writing end.
func newPipe() (r, w *os.File, err error) { return os.Pipe() }

// newInput returns a pipe whose reading end is for a command.
func newInput() (r, w *os.File, err error) { return os.Pipe() }

func openNull() (*os.File, error) { return os.Open(os.DevNull) }
