package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/indexing"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/process"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/tree"
	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/cmd/reconcile/internal/runner"
	"reconcile.dev/reconcile/state"
)

// Options say what examining a tree takes of the process.
type Options struct {
	Tree     tree.Config
	Indexing indexing.Options
	// WarnMemory is called with what is wrong with the memory.
	WarnMemory func(text string)
}

// New returns what the doctor looks at in a tree, and repairs with.
func New(o Options) Env {
	b := process.ReadBuild()
	env := Env{
		Dir: o.Tree.Dir, Now: o.Tree.Now, Environ: os.Environ(), Git: gitrepo.Inspect,
		Program: fmt.Sprintf("reconcile %s, %s, %s", b.Version, b.Go, b.Platform),
		Open: func(noCache bool) (*state.Store, error) {
			so := o.Tree.StoreOptions()
			so.NoCache = noCache
			return state.Open(o.Tree.Dir, so)
		},
		Reap: o.reap, Remember: o.rebuildMemory, Index: o.examineIndex, Reindex: o.rebuildIndex,
	}
	if self, err := os.Executable(); err == nil {
		env.Hold = []string{self, "doctor", "--hold-lock"}
	}
	if repo, err := gitrepo.Open(o.Tree.Dir); err == nil {
		env.Settle = repo.Settle
	}
	return env
}

// reap ends what killed runs left running.
func (o Options) reap(ctx context.Context, orphans []state.Orphan) error {
	r, err := runner.New(runner.Options{Root: o.Tree.Dir, Now: o.Tree.Now})
	if err != nil {
		return err
	}
	return errors.Join(r.ReapAll(ctx, orphans), r.Close(ctx))
}

func (o Options) rebuildMemory(ctx context.Context, s *state.Store, t *state.Tree) error {
	m := memstore.Open(s, memstore.Options{Now: o.Tree.Now, Kinds: s.Kinds(), Warn: o.WarnMemory, Settings: s.Settings()})
	_, err := m.Rebuild(ctx, t)
	return errors.Join(err, m.Close())
}

// examineIndex says what is in an index that is there, or why it cannot be used.
func (o Options) examineIndex(ctx context.Context, s *state.Store, t *state.Tree) (string, error) {
	k, _, err := indexing.NewKeeper(ctx, o.Indexing, s, t)
	if err != nil {
		return "", err
	}
	return indexing.Examine(k, t)
}

// rebuildIndex puts a new index in the place of one that cannot be used.
func (o Options) rebuildIndex(ctx context.Context, s *state.Store, t *state.Tree) error {
	k, _, err := indexing.NewKeeper(ctx, o.Indexing, s, t)
	if err != nil {
		return err
	}
	x, err := k.Rebuild(ctx, t)
	if err != nil {
		return err
	}
	x.Close()
	return nil
}
