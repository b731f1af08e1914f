// Package outputs keeps what nodes leave behind: declared outputs in the local cache, and, where the spec asks for it, as
// references in git.
package outputs

import (
	"context"
	"errors"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/share"
	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	cache "reconcile.dev/reconcile/state/outputs"
)

// Options say what a Keeper works with.
type Options struct {
	Dir      string // of the tree
	Store    *state.Store
	Settings *schemas.SettingsSpec
	Git      *gitrepo.Repo // nil: nothing is kept in git
	Share    *share.Share  // nil: nothing is pushed
	Warn     func(text string)
}

// Keeper implements loop.Outputs: declared outputs in the local cache and in git.
type Keeper struct {
	o      Options
	unkept map[string]bool // runs whose outputs cannot be kept in git, by key
}

// New returns a Keeper.
func New(o Options) *Keeper { return &Keeper{o: o, unkept: map[string]bool{}} }

// Restore implements loop.Outputs. Where the cache lacks something, or it is damaged, git is asked for what is kept there.
func (k *Keeper) Restore(ctx context.Context, r controllers.Restore) error {
	for _, o := range r.Outputs {
		err := cache.Restore(ctx, k.o.Store.Root(), o)
		if errors.Is(err, cache.ErrMissing) && r.Ref != "" {
			if err = k.fill(ctx, r); err == nil {
				err = cache.Restore(ctx, k.o.Store.Root(), o)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Sweep implements loop.Outputs.
func (k *Keeper) Sweep(t *state.Tree) error {
	if k.o.Store.OthersAtWork() {
		return nil // what they add is not on record yet
	}
	return cache.Sweep(k.o.Store.Root(), CacheLimit(t.Settings()), func(name func(schemas.Output)) {
		for _, e := range t.Active(schemas.DAGKind.Name) {
			if !e.RunsHave(state.Outputs) {
				continue
			}
			for _, r := range e.Runs() {
				for _, o := range r.Outputs {
					name(o)
				}
			}
		}
	})
}

// CacheLimit is how many bytes the local cache of outputs may have.
func CacheLimit(s *schemas.SettingsSpec) int64 { return int64(*s.Runs.OutputCache) }
