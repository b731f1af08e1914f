package ops

import (
	"context"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/tree"
	"reconcile.dev/reconcile/state"
)

// open opens and reads the tree. The caller closes the store.
func (e Env) open(ctx context.Context) (*openTree, error) { return openBy(ctx, e.Tree.Load) }

// openChanged is open for what decides: what rests may not be loaded.
func (e Env) openChanged(ctx context.Context) (*openTree, error) {
	return openBy(ctx, e.Tree.LoadChanged)
}

func openBy(ctx context.Context, load func(context.Context) (*state.Store, *state.Tree, tree.Reader, error)) (o *openTree, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	o = &openTree{}
	o.store, o.tree, o.reader, err = load(ctx)
	return o, err
}

// openTree is an open tree that can be refreshed.
type openTree struct {
	store  *state.Store
	tree   *state.Tree
	reader tree.Reader
}

// load opens and reads the tree. The caller closes the store.
func (e Env) load(ctx context.Context) (*state.Store, *state.Tree, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	s, t, _, err := e.Tree.Load(ctx)
	return s, t, err
}

// refresh reads the journals, and the files that hints name, or all files.
func (o *openTree) refresh(ctx context.Context, hints []string) error {
	t, err := o.reader.Refresh(ctx, o.store, o.tree, hints)
	if err == nil {
		o.tree = t
	}
	return err
}
