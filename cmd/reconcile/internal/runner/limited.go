package runner

import (
	"fmt"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/runner/limits"
	"reconcile.dev/reconcile/schemas"
)

// killedCode is the exit code of a command that SIGKILL ended.
const killedCode = 128 + 9

// beginLimits makes what bounds the attempt's programs, and records what that is.
func (a *attempt) beginLimits() {
	l := a.task.Limits
	if l == nil {
		return
	}
	a.bound = limits.Begin(limits.Bounds{Memory: l.MemoryBytes(), CPUs: l.CPUs, PIDs: l.PIDs})
	a.record.Limits = &schemas.RunLimits{By: a.bound.By, Why: a.bound.Why}
}

// endLimits notes that a run which failed with err had no more memory, and returns why it failed. It adds a note to a
// run that nothing bounded.
func (a *attempt) endLimits(err error) error {
	if a.bound == nil {
		return err
	}
	if a.bound.By == schemas.LimitsByNone {
		a.warning = strings.TrimPrefix(join(a.warning, "limits: "+a.bound.Why), "; ")
	}
	switch {
	case err == nil:
		return nil
	case a.bound.OutOfMemory(a.record.Output + err.Error()):
	case a.record.ExitCode != nil && a.bound.PerhapsOutOfMemory(*a.record.ExitCode):
		return fmt.Errorf("%w; a program that gets no more memory may end so: limits.memory is %s (%s)", err, a.task.Limits.Memory, a.bound.By)
	default:
		return err
	}
	a.record.Limits.Exceeded = schemas.LimitMemory
	if code := a.record.ExitCode; a.bound.Group() != nil && code != nil && *code == killedCode {
		return fmt.Errorf("out of memory: limits.memory is %s (%s): the system ended it", a.task.Limits.Memory, a.bound.By)
	}
	return fmt.Errorf("out of memory: limits.memory is %s (%s): %w", a.task.Limits.Memory, a.bound.By, err)
}
