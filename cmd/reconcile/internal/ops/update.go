package ops

import (
	"context"
	"errors"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/tree"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/state"
)

// View shows a run of the loop in progress.
type View interface {
	engine.Sink
	Close()
}

// update updates the tree by a run, so that expired questions are noticed and written files are applied. With
// DecideOnly it starts nothing and waits for nothing. With noRun, while another run is active, or inside a run, it only
// reads the tree: that run does the rest. whole reports whether the memory is up to date, too.
func (e Env) update(ctx context.Context, o *openTree, noRun bool, q engine.Request) (whole bool, err error) {
	switch {
	case noRun || e.Caller.InRun():
	case anyClaim(o.tree):
		e.note("another run is at work; this is how things stand")
	default:
		out, err := e.runLoop(ctx, q, false)
		if out.LedgersBusy != nil && q.DecideOnly {
			e.note("%v", out.LedgersBusy)
		} else {
			err = errors.Join(err, out.LedgersBusy)
		}
		if err != nil {
			return false, lockTimeout(err, "what was written is kept, the next run takes it up")
		}
		whole = !out.MemoryBusy
		if out.Verdict == readiness.ExitInvalid {
			e.note("some spec files cannot be used; \"reconcile validate\" lists them")
		}
	}
	return whole, o.refresh(ctx, nil)
}

// applyByRun runs the tree to apply the written specs, unless an active run will apply it. nil: there was no run.
func (e Env) applyByRun(ctx context.Context, before *state.Tree, noRun bool) (*RunResult, error) {
	switch {
	case noRun:
		return nil, nil
	case anyClaim(before):
		e.note("another run is at work and takes it from here")
		return nil, nil
	}
	r, err := e.run(ctx, engine.Request{})
	if err != nil {
		return nil, err
	}
	return &r, nil
}

// openTree is an open tree that can be refreshed.
type openTree struct {
	store  *state.Store
	tree   *state.Tree
	reader tree.Reader
}

// refresh reads the journals, and the files that hints name, or all files.
func (o *openTree) refresh(ctx context.Context, hints []string) error {
	t, err := o.reader.Refresh(ctx, o.store, o.tree, hints)
	if err == nil {
		o.tree = t
	}
	return err
}
