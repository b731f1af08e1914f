package index

import (
	"path"
	"strings"

	"reconcile.dev/reconcile/state"
)

// Skips says of folders that nothing below them is indexed as a file, so that nobody needs to watch them.
func (k *Keeper) Skips(tree *state.Tree) func(dir string) bool {
	f := &files{exclude: tree.Settings().Index.Exclude}
	return func(dir string) bool {
		parent, name := path.Split(dir)
		return f.skipped(dir, name) || k.Ignored(strings.TrimSuffix(parent, "/"), true)(name, true)
	}
}

// Exists reports whether there is a snapshot, sound or not.
func (k *Keeper) Exists() bool {
	_, err := k.Store.LookAt(SnapshotPath)
	return err == nil
}
