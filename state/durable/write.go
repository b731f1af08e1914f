package durable

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"syscall"

	"reconcile.dev/reconcile/state/regular"
)

// DefaultMode is the mode of new files, before the umask. Existing files keep their mode.
const DefaultMode fs.FileMode = 0o644

// WriteFile replaces the file at path below root, durably, and makes missing folders. tmpDir, also below root, is the
// folder of temporary files; it is made if missing.
func WriteFile(root *os.Root, tmpDir, path string, data []byte) error {
	s, err := Stage(root, tmpDir, path, data)
	if err != nil {
		return err
	}
	return s.Commit()
}

// Stage is StageAll for one file; nil data is an empty one.
func Stage(root *os.Root, tmpDir, path string, data []byte) (*Staged, error) {
	if data == nil {
		data = []byte{}
	}
	return StageAll(root, tmpDir, []Op{{Path: path, Data: data}})
}

// writer is the state of one call of this package.
type writer struct {
	root    *os.Root
	tmp     string
	checked map[string]bool // folders that exist
	absent  map[string]bool // folders that did not exist while staging; nothing is below them
	folders folders         // handles, so that a batch does not walk the same path for every file
	dirty   []string        // folders with a changed entry, in order of first change
	temps   []string        // temporary files that may have to be removed
}

func newWriter(root *os.Root, tmpDir string) *writer {
	w := &writer{root: root, tmp: path.Clean(tmpDir), folders: folders{root: root}}
	w.forget()
	return w
}

// forget drops the cached state of folders: other processes may have changed them.
func (w *writer) forget() {
	w.checked, w.absent = map[string]bool{".": true}, map[string]bool{}
	w.folders.close()
}

// whole returns content in one part.
func whole(data []byte) iter.Seq[[]byte] { return slices.Values([][]byte{data}) }

// stage writes the parts to a temporary file with the mode that the target has or will have, and returns its name.
func (w *writer) stage(target string, parts iter.Seq[[]byte], sync bool) (string, error) {
	mode, err := w.vet(target)
	if err != nil {
		return "", fail("write", target, err)
	}
	if err := w.makeDir(w.tmp, false); err != nil {
		return "", fail("write", target, err)
	}
	temp := path.Join(w.tmp, tempName())
	if err := w.create(temp, parts, mode, sync); err != nil {
		return "", fail("write", target, err)
	}
	return temp, nil
}

// create writes a new file. An error leaves none. An exact mode is set regardless of the umask; 0 is for a new file.
func (w *writer) create(name string, parts iter.Seq[[]byte], mode fs.FileMode, sync bool) error {
	return w.createFrom(name, cmp.Or(mode, DefaultMode), sync, func(f *os.File) error {
		for part := range parts {
			if _, err := f.Write(part); err != nil {
				return err
			}
		}
		return nil
	})
}

// place renames a synced temporary file over target, and removes it if that fails.
func (w *writer) place(target, temp string) error {
	err := w.rename(target, temp)
	if errors.Is(err, syscall.EXDEV) {
		err = w.placeBeside(target, temp)
	}
	if err != nil {
		_ = w.root.Remove(temp)
		return fail("write", target, err)
	}
	w.touch(path.Dir(target))
	return nil
}

// rename makes the folders of target and renames temp over it. Another process may remove an empty folder between
// the two, so it tries again.
func (w *writer) rename(target, temp string) (err error) {
	for range 50 {
		if err = w.makeDir(path.Dir(target), true); err == nil {
			err = w.folders.rename(temp, target)
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		w.forget()
	}
	return err
}

// placeBeside places content from a temporary folder on another file system than target: it copies the content to a file
// next to the target. The note leads Sweep to that file if this process dies here.
func (w *writer) placeBeside(target, temp string) error {
	if _, err := w.vet(target); err != nil {
		return err
	}
	src, _, err := regular.Open(w.root, temp)
	if err != nil {
		return err
	}
	defer src.Close()
	fi, err := src.Stat()
	if err != nil {
		return err
	}
	beside := path.Join(path.Dir(target), "."+path.Base(target)+"."+path.Base(temp))
	note := temp + noteSuffix
	if err := w.create(note, whole([]byte(beside)), 0, true); err != nil {
		return err
	}
	defer func() {
		_ = w.root.Remove(temp)
		_ = w.root.Remove(note)
	}()
	copied := func(f *os.File) error {
		_, err := io.Copy(f, src)
		return err
	}
	if err := w.createFrom(beside, fi.Mode().Perm(), true, copied); err != nil {
		return err
	}
	if err := w.root.Rename(beside, target); err != nil {
		_ = w.root.Remove(beside)
		return err
	}
	return nil
}

// fail returns an error with the path, the cause and, if known, the next step.
func fail(verb, path string, err error) error {
	return Advise(fmt.Errorf("%s %s: %w", verb, path, err))
}
