// Package indexing keeps the index of a tree: for a command that searches, and beside a run that watches.
package indexing

import (
	"context"
	"sync"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/egress"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/tree"
	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/cmd/reconcile/internal/index"
	"reconcile.dev/reconcile/schemas/treepath"
	"reconcile.dev/reconcile/state"
)

// Options say what keeping an index takes.
type Options struct {
	Tree tree.Config
	// Warn is called with what the index has to do without. It keeps nobody from working.
	Warn func(error)
	// Note is called with what a person should know.
	Note func(text string)
	// Progress is called with how far building is; may be nil.
	Progress func(step string, done, total int)
}

// NewKeeper returns what keeps the index of an open tree. denied says why the endpoint for vectors may not be asked; nil: it
// may, or there is none.
func NewKeeper(ctx context.Context, o Options, s *state.Store, t *state.Tree) (k *index.Keeper, denied, err error) {
	k = &index.Keeper{
		Store: s, Now: o.Tree.Now, Warn: Once(o.Warn), Progress: o.Progress,
		Ignored: func(string, bool) func(string, bool) bool {
			return func(name string, _ bool) bool { return treepath.OfName(name) == treepath.Git }
		},
	}
	if r, err := gitrepo.Open(o.Tree.Dir); err == nil {
		ignores, err := r.Ignores(ctx)
		if err != nil {
			return nil, nil, err
		}
		k.Ignored = ignores.Folder
	}
	policy := egress.Policy{Getenv: o.Tree.Getenv}
	k.Embedder, denied, err = policy.Embedder(s.Root(), t.Settings().Index, o.Warn)
	return k, denied, err
}

// Once passes on what was not reported yet: an index is built of words first, and then with vectors.
func Once(warn func(error)) func(error) {
	var said sync.Map
	return func(err error) {
		if _, again := said.LoadOrStore(err.Error(), true); !again {
			warn(err)
		}
	}
}
