package doctor

import (
	"path/filepath"

	"reconcile.dev/reconcile/state/worktree"
)

// blocked says what git would wait for without end, if there is something.
func (e *Env) blocked() error {
	dir, err := filepath.Abs(e.Dir)
	if err != nil {
		return err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return err
	}
	folders := e.settings().Folders
	return worktree.Blocked(dir, filepath.Join(dir, filepath.FromSlash(folders.State)),
		filepath.Join(dir, filepath.FromSlash(folders.Specs)), filepath.Join(dir, "vectors"))
}
