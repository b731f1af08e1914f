// Package ops has the use cases of the program: functions from a typed request to a typed result, without flags, streams or
// exit statuses of a process. A surface parses what a user wants, calls one operation, and renders the result. Every error of
// an operation is an [*Error].
package ops

import (
	"context"
	"fmt"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/caller"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/tree"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Env is what an operation works with.
type Env struct {
	Tree   tree.Config   // opens the tree, and has the clock
	Prefix string        // the folder of the tree where the caller is, which names of files are relative to; "": the top
	Caller caller.Caller // who asks
	Sink   Sink          // nil: nobody listens

	// View shows a run of the loop while it goes on, with talk also what is said in clarifications; nil: runs are not shown.
	View func(talk bool) View
	// Engine runs the loop; nil: [engine.Run].
	Engine func(context.Context, engine.Options, engine.Request) (engine.Result, error)
}

// Sink receives what an operation reports besides its result. Its methods may be called from any goroutine.
type Sink interface {
	// Note is called with what a person should know.
	Note(text string)
	// Warn is called with what is wrong and does not end the operation.
	Warn(text string)
	// Count is called, as often as one likes, with how far work is that may take long.
	Count(step string, done, total int)
}

// kinds are those that the tree is read with.
func (e Env) kinds() schemas.Kinds { return e.Tree.Table().Schemas() }

func (e Env) note(format string, args ...any) {
	if e.Sink != nil {
		e.Sink.Note(fmt.Sprintf(format, args...))
	}
}

func (e Env) warn(text string) {
	if e.Sink != nil {
		e.Sink.Warn(text)
	}
}

// openTree is an opened tree that can be read again.
type openTree struct {
	store  *state.Store
	tree   *state.Tree
	reader tree.Reader
}

// open opens and reads the tree. The caller closes the store.
func (e Env) open(ctx context.Context) (o *openTree, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	o = &openTree{}
	o.store, o.tree, o.reader, err = e.Tree.Load(ctx)
	return o, err
}

// refresh looks again at the files that hints name, or at all of them, and at the journals.
func (o *openTree) refresh(ctx context.Context, hints []string) error {
	t, err := o.reader.Refresh(ctx, o.store, o.tree, hints)
	if err == nil {
		o.tree = t
	}
	return err
}

// load opens and reads the tree. The caller closes the store.
func (e Env) load(ctx context.Context) (*state.Store, *state.Tree, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	s, t, _, err := e.Tree.Load(ctx)
	return s, t, err
}
