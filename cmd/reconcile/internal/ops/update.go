package ops

import (
	"context"
	"errors"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// View shows a run of the loop in progress.
type View interface {
	engine.Sink
	Close()
}

// silentView is the view of a run that shows only warnings.
type silentView struct {
	render.Silent
	warn func(text string)
}

func (silentView) Said(*controllers.Clarified) {}
func (silentView) Missed(int)                  {}
func (u silentView) Warn(text string)          { u.warn(text) }

// runLoop runs the loop on the tree; talk shows clarification events.
func (e Env) runLoop(ctx context.Context, q engine.Request, talk bool) (engine.Result, error) {
	var view View = silentView{warn: e.warn}
	if e.View != nil {
		view = e.View(talk)
	}
	defer view.Close()
	run := engine.Run
	if e.Engine != nil {
		run = e.Engine
	}
	return run(ctx, engine.Options{Tree: e.Tree, Sink: view, Inside: e.Caller.Run(), WarnIndex: e.warnIndex}, q)
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
		if out.Verdict == controllers.ExitInvalid {
			e.note("some spec files cannot be used; \"reconcile validate\" lists them")
		}
	}
	return whole, o.refresh(ctx, nil)
}

// anyClaim reports whether a live process performs an effect in this tree.
func anyClaim(t *state.Tree) bool {
	for e := range (*controllers.Selection)(nil).Entries(t) {
		if len(e.Claims) > 0 {
			return true
		}
	}
	return false
}

// lockTimeout converts a busy lock's error to an error of that kind with the next step; other errors are returned
// unchanged.
func lockTimeout(err error, next string) error {
	if !errors.Is(err, state.ErrBusy) {
		return err
	}
	why := strings.TrimPrefix(err.Error(), clarify.LockTimeout+": ")
	return &clarify.Error{Kind: clarify.LockTimeout, Message: why + "; " + next}
}

// recordHook writes the hook record that decide returns for the tree, which is read under its lock: concurrent
// decisions see each other's records. If decide returns nil, nothing is written.
func (o *openTree) recordHook(ctx context.Context, decide func(*state.Tree) (*schemas.Run, error)) (err error) {
	lock, err := o.store.Lock(ctx)
	if err != nil {
		return lockTimeout(err, "nothing was recorded, try again")
	}
	defer func() { err = errors.Join(err, lock.Release()) }()
	if err := o.refresh(ctx, nil); err != nil {
		return err
	}
	r, err := decide(o.tree)
	if err != nil || r == nil {
		return err
	}
	data, err := state.EncodeRun(r)
	if err != nil {
		return err
	}
	_, err = o.store.Write(ctx, []state.Change{{Path: o.store.RunPath(r.Key), Data: data}})
	return err
}
