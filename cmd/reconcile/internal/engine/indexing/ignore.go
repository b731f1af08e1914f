package indexing

import (
	"fmt"
	"path"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/cmd/reconcile/internal/index"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/state"
)

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
