package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"

	"reconcile.dev/reconcile/schemas/treepath"
)

// ErrRefused is the cause of errors about paths that this package never writes to.
var ErrRefused = errors.New("refused")

// vet checks that target may be written and returns its mode, or 0 if it does not exist.
func (w *writer) vet(target string) (fs.FileMode, error) {
	if err := vetPath(target); err != nil {
		return 0, err
	}
	dir := path.Dir(target)
	if err := w.vetDir(dir); err != nil || w.absent[dir] {
		return 0, err
	}
	fi, err := w.root.Lstat(target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case err != nil:
		return 0, err
	case !fi.Mode().IsRegular():
		return 0, fmt.Errorf("%w: it is a %s and not a regular file; remove it", ErrRefused, describe(fi.Mode()))
	}
	return fi.Mode().Perm(), nil
}

// vetPath checks the path without access to the disk.
func vetPath(p string) error {
	switch owner := treepath.Of(p); {
	case owner == treepath.Outside || p == ".":
		return fmt.Errorf("%w: not a clean path below the root", ErrRefused)
	case owner == treepath.Git:
		return fmt.Errorf("%w: it leads into .git", ErrRefused)
	}
	return nil
}

// vetDir checks that dir and its existing parents are folders.
func (w *writer) vetDir(dir string) error {
	if w.checked[dir] || w.absent[dir] {
		return nil
	}
	if err := w.vetDir(path.Dir(dir)); err != nil {
		return err
	}
	fi, err := w.root.Lstat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		w.absent[dir] = true
		return nil
	case err != nil:
		return err
	case !fi.IsDir():
		return fmt.Errorf("%w: %s is a %s and not a folder; put the folder itself there", ErrRefused, dir, describe(fi.Mode()))
	}
	w.checked[dir] = true
	return nil
}

// makeDir makes dir and its missing parents. With sync, it records the folders with new entries for syncDirs.
func (w *writer) makeDir(dir string, sync bool) error {
	if w.checked[dir] {
		return nil
	}
	if err := vetPath(dir); err != nil {
		return err
	}
	delete(w.absent, dir)
	if err := w.vetDir(dir); err != nil || w.checked[dir] {
		return err
	}
	if err := w.makeDir(path.Dir(dir), sync); err != nil {
		return err
	}
	if err := w.root.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	if sync { // even if another process made the folder: it may not have synced it yet
		w.touch(path.Dir(dir))
	}
	delete(w.absent, dir)
	return w.vetDir(dir)
}

func (w *writer) touch(dir string) {
	if !slices.Contains(w.dirty, dir) {
		w.dirty = append(w.dirty, dir)
	}
}

// syncDirs makes the names in all touched folders durable.
func (w *writer) syncDirs() error {
	defer func() { w.dirty = nil }()
	if len(w.dirty) > few && syncTree(w.root, ".") == nil {
		return nil
	}
	for _, dir := range w.dirty {
		if err := syncDir(w.root, dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fail("sync folder", dir, err)
		}
	}
	return nil
}

// prune removes dir and its parents while they are empty, except stop and the folders that are not below stop.
func (w *writer) prune(dir, stop string) error {
	for dir != "." && (stop == "." || strings.HasPrefix(dir, stop+"/")) {
		err := w.root.Remove(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case errors.Is(err, syscall.ENOTEMPTY), errors.Is(err, fs.ErrExist):
			return nil
		case err != nil:
			return err
		}
		delete(w.checked, dir)
		w.folders.forget(dir)
		dir = path.Dir(dir)
		w.touch(dir)
	}
	return nil
}

func describe(m fs.FileMode) string {
	switch {
	case m&fs.ModeSymlink != 0:
		return "symbolic link"
	case m.IsDir():
		return "folder"
	case m&fs.ModeNamedPipe != 0:
		return "named pipe"
	case m.IsRegular():
		return "file"
	}
	return "device or socket"
}
