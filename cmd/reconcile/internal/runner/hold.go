package runner

import (
	"context"
	"os"
	"runtime"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Hold marks the processes of a [Program] as those of a key, so that [Runner.EndHeld] finds them after this process was killed.
type Hold struct {
	runner *Runner
	lease  *lease
	key    string
}

// Hold takes the lease of a key; it fails where processes of an earlier program still have it.
func (r *Runner) Hold(key string) (*Hold, error) {
	k, err := r.leases.take(key)
	if err != nil {
		return nil, err
	}
	return &Hold{r, k, key}, nil
}

// End ends what the program left running, and releases the lease.
func (h *Hold) End(ctx context.Context) error {
	if free, err := h.lease.free(); free || err != nil {
		return err
	}
	return h.runner.EndHeld(ctx, h.key)
}

// EndHeld ends the processes of a key whose reconcile was killed. A *HeldError says that they could not be ended, or that it lives.
func (r *Runner) EndHeld(ctx context.Context, key string) error {
	return r.Reap(ctx, state.Orphan{Claim: state.Claim{Run: schemas.Run{Key: key}}})
}

// mark returns the variable by which processes are found, and the file with the lease that they inherit. Windows lets none be inherited.
func (h *Hold) mark() (variable string, file *os.File) {
	if runtime.GOOS != "windows" {
		file = h.lease.file
	}
	return chainVar + "=" + h.runner.marks.chain(h.key), file
}
