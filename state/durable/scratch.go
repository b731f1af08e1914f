package durable

import (
	"os"
	"path"
)

// Scratch is a new file for what a program would otherwise hold in memory. It has no name any more, so that it is gone when
// it is closed or the program ends; where the system does not take the name of an open file, [Sweep] does it later.
func Scratch(root *os.Root, tmpDir string) (*os.File, error) {
	w := newWriter(root, tmpDir)
	defer w.folders.close()
	name := path.Join(w.tmp, tempName())
	if err := w.makeDir(w.tmp, false); err != nil {
		return nil, fail("make", name, err)
	}
	f, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fail("make", name, err)
	}
	_ = root.Remove(name)
	return f, nil
}
