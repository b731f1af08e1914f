//go:build !linux

package runner

// await returns when the process has ended. It reaps it: in the moment after it a signal to its group could meet
// another, which does not happen before the system has given out all its process numbers.
func (p *process) await() { p.reap() }
