package durable

import (
	"fmt"
	"io/fs"
	"os"
	"path"
)

// Move moves a regular file from one path below root to another, unused one, durably, and makes missing folders. A reader,
// also after a power loss, sees it at one of the paths. The error wraps fs.ErrExist if the target exists, fs.ErrNotExist if
// the file does not, and ErrRefused for paths that this package does not change.
func Move(root *os.Root, from, to string) error {
	w := newWriter(root, ".")
	defer w.folders.close()
	mode, err := w.vet(from)
	switch {
	case err != nil:
		return fail("move", from, err)
	case mode == 0:
		return fail("move", from, fs.ErrNotExist)
	}
	if mode, err = w.vet(to); err != nil || mode != 0 {
		if err == nil {
			err = fs.ErrExist
		}
		return fail("move", to, err)
	}
	if err := w.makeDir(path.Dir(to), true); err != nil {
		return fail("move", to, err)
	}
	if err := root.Rename(from, to); err != nil {
		return fail("move", from, fmt.Errorf("to %s: %w", to, err))
	}
	w.touch(path.Dir(to))
	w.touch(path.Dir(from))
	return w.syncDirs()
}
