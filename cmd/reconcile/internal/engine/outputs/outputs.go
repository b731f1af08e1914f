// Package outputs keeps the declared outputs of nodes: in the local cache, and, if the spec asks for it, as references
// in git.
package outputs

import (
	"context"
	"errors"
	"slices"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/share"
	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/controllers/nodes"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	cache "reconcile.dev/reconcile/state/outputs"
	"reconcile.dev/reconcile/state/regular"
)

// Options configure a Keeper.
type Options struct {
	Dir      string // of the tree
	Store    *state.Store
	Settings *schemas.SettingsSpec
	Git      *gitrepo.Repo // nil: git keeps nothing
	Share    *share.Share  // nil: nothing is pushed
	Warn     func(text string)
}

// Keeper implements loop.Outputs: it keeps declared outputs in the local cache and in git.
type Keeper struct {
	o      Options
	unkept map[string]bool // runs whose outputs git cannot keep, by key
}

// New returns a Keeper.
func New(o Options) *Keeper { return &Keeper{o: o, unkept: map[string]bool{}} }

// Restore restores the outputs of a node from the cache, or fills the cache from git first if an output is missing or
// damaged there. It implements loop.Outputs.
func (k *Keeper) Restore(ctx context.Context, r settle.Restore) error {
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
		return nil // their additions are not recorded yet
	}
	return cache.Sweep(k.o.Store.Root(), int64(*t.Settings().Runs.OutputCache), func(name func(schemas.Output)) {
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

// Compare compares the outputs of a DAG's succeeded nodes with the files in dir, and returns the missing and the
// changed ones. missing are those that do not exist, changed those that differ from the result of their runs; both by
// node.
func Compare(ctx context.Context, dir string, e *state.Entry) (missing, changed map[string][]string, err error) {
	missing, changed = nodes.NotHere(e), map[string][]string{}
	spec := schemas.SpecAs[*schemas.DAGSpec](e.Object)
	if spec == nil {
		return missing, changed, nil
	}
	root, err := regular.Root(dir)
	if err != nil {
		return missing, changed, err
	}
	defer root.Close()
	for node, files := range spec.OutputPaths() {
		for _, file := range files {
			was := nodes.Recorded(e, node, file)
			if len(was) == 0 || slices.Contains(missing[node], file) {
				continue
			}
			is, err := cache.Digest(ctx, root, file)
			same := func(o schemas.Output) bool { return o.Digest == is.Digest }
			if err != nil || !slices.ContainsFunc(was, same) {
				changed[node] = append(changed[node], file)
			}
		}
	}
	return missing, changed, ctx.Err()
}
