package durable

import (
	"errors"
	"io/fs"
	"os"
	"path"
)

// Add writes a file that does not exist, whole and at once, and like Replace syncs nothing. The error wraps
// fs.ErrExist if there is a file of the name: of two processes that add one, one is told so. Where the file system has
// no hard links that is only looked at.
func Add(root *os.Root, tmpDir, target string, data []byte) error {
	w := newWriter(root, tmpDir)
	defer w.folders.close()
	temp, err := w.stage(target, whole(data), false)
	if err != nil {
		return err
	}
	if err = w.makeDir(path.Dir(target), false); err == nil {
		err = root.Link(temp, target)
	}
	if err == nil {
		_ = root.Remove(temp) // else a sweep does it
		return nil
	}
	if _, there := root.Lstat(target); errors.Is(there, fs.ErrNotExist) {
		return w.place(target, temp)
	}
	_ = root.Remove(temp)
	return fail("write", target, err)
}
