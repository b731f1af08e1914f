package runner

import (
	"os"
	"sync"
)

// process is the first process of a run.
type process struct {
	*os.Process
	once  sync.Once
	state *os.ProcessState
}

func (p *process) pid() int { return p.Pid }

// reap waits for the process and takes its exit state; nil if the system does not tell it.
func (p *process) reap() *os.ProcessState {
	p.once.Do(func() { p.state, _ = p.Wait() })
	return p.state
}
