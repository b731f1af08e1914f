package durable

import (
	"errors"
	"os"
	"path"
	"syscall"
)

// Replace puts a file in the place of another as WriteFile does, but syncs nothing: it is for what can be made again from
// other files, and is checked when it is read. A reader sees the old or the new, whole; after a loss of power there may
// be the old one, the new one, one without content, or none. The content is what the parts are, one after the other.
func Replace(root *os.Root, tmpDir, target string, parts ...[]byte) error {
	w := newWriter(root, tmpDir)
	defer w.folders.close()
	temp, err := w.stage(target, nil, false)
	if err == nil {
		err = w.fill(temp, parts)
	}
	if err != nil {
		return err
	}
	if err = w.makeDir(path.Dir(target), false); err == nil {
		if err = w.folders.exchange(temp, target); err == nil {
			_ = root.Remove(temp) // it is the old one now
			return nil
		}
	}
	if !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EXDEV) {
		_ = root.Remove(temp)
		return fail("write", target, err)
	}
	return w.place(target, temp)
}

// fill writes into a temporary file that is empty. An error leaves none.
func (w *writer) fill(temp string, parts [][]byte) error {
	f, err := w.root.OpenFile(temp, os.O_WRONLY, 0)
	if err != nil {
		return fail("write", temp, err)
	}
	for _, p := range parts {
		if _, err = f.Write(p); err != nil {
			break
		}
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = w.root.Remove(temp)
		return fail("write", temp, err)
	}
	return nil
}
