package main

import (
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/state"
)

// atFlag binds --at to a command that looks at the tree.
func (a *app) atFlag(cmd *cobra.Command, at *string) {
	cmd.Flags().StringVar(at, "at", "", "look at the tree as it is in `COMMIT`: a hash, a branch, a tag, HEAD~3")
}

// loadAt is load for the tree as a commit has it; "" is the tree as it is. done gives up what it holds.
func (a *app) loadAt(ctx context.Context, rev string) (t *state.Tree, done func(), err error) {
	if rev == "" {
		s, t, err := a.load(ctx)
		if err != nil {
			return nil, nil, err
		}
		return t, func() { _ = s.Close() }, nil // it saves a cache, no more
	}
	repo, commit, err := a.config().Revision(ctx, rev)
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp("", "reconcile-at-")
	if err != nil {
		return nil, nil, fmt.Errorf("make a folder for the tree of %s: %w", rev, err)
	}
	remove := func() { _ = os.RemoveAll(dir) } // what is left of it, the system clears away
	t, err = a.config().LoadAt(ctx, repo, commit, dir)
	if err != nil {
		remove()
		return nil, nil, fmt.Errorf("read the tree of %s: %w", rev, err)
	}
	return t, remove, nil
}
