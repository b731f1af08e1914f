package runner

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/outputs"
)

// maxOutputs is how many outputs a record describes. Of the others only the existence is known.
const maxOutputs = 128

// keepOutputs describes the declared outputs of a success, and adds them to the cache. What cannot be read any more is
// left out: of such an output only the existence counts. When reconcile ends meanwhile and they take long, all are.
func (a *attempt) keepOutputs() []schemas.Output {
	paths := a.task.OutputPaths()
	if len(paths) == 0 {
		return nil
	}
	ctx, cancel := a.untilClosing()
	defer cancel()
	var out []schemas.Output
	for _, name := range paths[:min(len(paths), maxOutputs)] {
		o, err := outputs.Put(ctx, a.root, name, a.o.OutputCache)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			out = append(out, o)
		}
	}
	return out
}

// describeFor is how long a runner that is being closed goes on to describe the outputs of a success.
const describeFor = 500 * time.Millisecond

// untilClosing returns a context that ends soon after the runner is being closed.
func (r *Runner) untilClosing() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		select {
		case <-r.closing:
			time.AfterFunc(describeFor, cancel)
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// removeTorn removes what a run left that was to make missing outputs again and did not succeed.
func (a *attempt) removeTorn() {
	for _, name := range a.task.Again {
		if checkOutputPath(name) == nil {
			_ = a.root.Remove(name) // what stays is taken for a file that somebody changed
		}
	}
}

// missing lists the files that the run expects and that do not exist.
func (a *attempt) missing() []string {
	return slices.DeleteFunc(slices.Clone(a.task.Expects), func(name string) bool {
		_, err := a.root.Lstat(name)
		return !errors.Is(err, fs.ErrNotExist)
	})
}
