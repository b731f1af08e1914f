package indexing

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/cmd/reconcile/internal/index"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors"
)

// Use brings the index of an open tree up to date and hands it to do; what is missing of a new one is made afterwards. do is
// called again where what it read was damaged.
func Use(ctx context.Context, o Options, k *index.Keeper, t *state.Tree, do func(*index.Kept) error) error {
	x, err := k.Refresh(ctx, t)
	if err != nil {
		return err
	}
	defer func() { x.Close() }()
	err = do(x)
	if errors.Is(err, vectors.ErrDamaged) { // what is large is compared with its sums as it is read
		repaired, failed := k.Repair(ctx, t, err)
		if failed != nil {
			return errors.Join(err, failed)
		}
		x.Close()
		x = repaired
		err = do(x)
	}
	if err != nil || x.Finish == nil {
		return err
	}
	o.Note(fmt.Sprintf("the index is built (%s); until then, search goes by words only", x.How.Rebuilt))
	whole, err := x.Finish(ctx)
	if _, written := errors.AsType[*fs.PathError](err); written {
		o.Warn(fmt.Errorf("the index could not be kept, and is built again next time: %w", err))
		return nil // what was asked for was answered
	}
	if err != nil {
		return err
	}
	x.Close()
	x = whole
	Ignore(o, k)
	return nil
}

// Ignore keeps the index, which was just built, out of git, or notes how where the folder has a .gitignore already.
func Ignore(o Options, k *index.Keeper) {
	dir, name := path.Split(index.SnapshotPath)
	if _, err := gitrepo.Open(o.Tree.Dir); err != nil || k.Ignored(path.Clean(dir), true)(name, false) {
		return
	}
	if wrote, err := k.Store.Ignore(path.Clean(dir), "*.snapshot"); err != nil || !wrote {
		o.Note(fmt.Sprintf("%s is derived, and git does not ignore it: add the line %s to .gitignore", index.SnapshotPath, IgnoreLine))
	}
}

// IgnoreLine is the line of .gitignore that keeps the index out of git.
const IgnoreLine = "/vectors/*.snapshot"

// Examine says what is in an index that is there, or why it cannot be used.
func Examine(k *index.Keeper, t *state.Tree) (string, error) {
	x, err := k.Open(t)
	if err != nil {
		return "", err
	}
	defer x.Close()
	model := x.Meta().Model
	if model == "" {
		model = "nothing"
	}
	return fmt.Sprintf("%s, vectors by %s", render.GroupedPlural(x.Graph().Nodes(), "node"), model), x.Verify()
}
