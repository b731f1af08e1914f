// Package ops has the use cases of the program: functions from a typed request to a typed result, without flags, streams or
// exit statuses of a process. A surface parses what a user wants, calls one operation, and renders the result. Every error of
// an operation is an [*Error].
package ops

import (
	"context"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/tree"
	"reconcile.dev/reconcile/state"
)

// Env is what an operation works with.
type Env struct {
	Tree tree.Config // opens the tree, and has the clock
}

// load opens and reads the tree. The caller closes the store.
func (e Env) load(ctx context.Context) (*state.Store, *state.Tree, error) {
	if err := ctx.Err(); err != nil {
		return nil, nil, err
	}
	s, t, _, err := e.Tree.Load(ctx)
	return s, t, err
}
