package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
)

// ErrRefused is the cause of errors about paths that this package never writes to.
var ErrRefused = errors.New("refused")

// VetDir refuses a path below root of which an existing part is no folder, as a link is not.
func VetDir(root *os.Root, dir string) error { return newWriter(root, ".").vetDir(dir) }

// vetDir checks that dir and its existing parents are folders.
func (w *durableWriter) vetDir(dir string) error {
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
func (w *durableWriter) makeDir(dir string, sync bool) error {
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

// syncDirs makes the names in all touched folders durable.
func (w *durableWriter) syncDirs() error {
	defer func() { w.dirty = nil }()
	if len(w.dirty) > few && syncTree(w.root, ".") == nil {
		return nil
	}
	for _, dir := range w.dirty {
		if err := SyncDir(w.root, dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fail("sync folder", dir, err)
		}
	}
	return nil
}

// prune removes dir and its parents while they are empty, except stop and the folders that are not below stop.
func (w *durableWriter) prune(dir, stop string) error {
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

// forget drops the cached state of folders: other processes may have changed them.
func (w *durableWriter) forget() {
	w.checked, w.absent = map[string]bool{".": true}, map[string]bool{}
	w.folders.close()
}
