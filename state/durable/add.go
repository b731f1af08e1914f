package durable

import (
	"errors"
	"io/fs"
	"os"
	"path"
)

// Add atomically creates the target file below root with the given data, unless the file exists. Like Replace, it syncs
// nothing. The error wraps fs.ErrExist if the file exists: of two concurrent processes, one gets the error. On file systems
// without hard links, that is only checked beforehand.
func Add(root *os.Root, tmpDir, target string, data []byte) error {
	w := newWriter(root, tmpDir)
	defer w.folders.close()
	temp, err := w.stage(target, wholeWrite(data), false)
	if err != nil {
		return err
	}
	return w.link(target, temp)
}

// AddFrom is Add for content of any length, which fill writes, and for a file with the given mode. If fill fails, nothing
// is added and its error is returned. With sync, content and name are durable afterwards.
func AddFrom(root *os.Root, tmpDir, target string, mode fs.FileMode, sync bool, fill func(*os.File) error) error {
	w := newWriter(root, tmpDir)
	defer w.folders.close()
	if _, err := w.vet(target); err != nil {
		return fail("write", target, err)
	}
	if err := w.makeDir(w.tmp, false); err != nil {
		return fail("write", target, err)
	}
	temp := path.Join(w.tmp, tempName())
	if err := w.createFrom(temp, mode, sync, fill); err != nil {
		return fail("write", target, err)
	}
	if err := w.link(target, temp); err != nil || !sync {
		return err
	}
	w.touch(path.Dir(target))
	return w.syncDirs()
}

// link gives a temporary file the name of a target that does not exist, and removes the temporary name.
func (w *writer) link(target, temp string) error {
	err := w.makeDir(path.Dir(target), true)
	if err == nil {
		err = w.root.Link(temp, target)
	}
	if err == nil {
		_ = w.root.Remove(temp) // otherwise a sweep removes it
		return nil
	}
	if _, there := w.root.Lstat(target); errors.Is(there, fs.ErrNotExist) {
		return w.place(target, temp)
	}
	_ = w.root.Remove(temp)
	return fail("write", target, err)
}
