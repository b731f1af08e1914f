// Package durable replaces files atomically and durably: a reader, also after a power loss, sees either the complete
// old content or the complete new one.
//
// # How
//
// New content goes to a temporary file, is synced, and is renamed over the old; then the folder is synced, and every
// new folder on the path. When a function has returned nil, all of it survives a power loss. When it returned an error,
// each file is old or new, and temporary files are removed.
//
// Temporary files are in a separate folder (reconcile uses .reconcile/tmp). Their names identify the process that
// created them, so that [Sweep] can remove those of killed processes. If that folder is on another file system, a file
// next to the target is used, and a note in the temporary folder leads Sweep to it.
//
// # Rejected paths
//
// All paths are slash-separated, below an [os.Root], and in clean form. No folder on the way and no target may be a
// symbolic link, no target may be anything but a regular file, and nothing below a .git folder is changed: an untrusted
// tree cannot redirect a write.
package durable

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"syscall"

	"reconcile.dev/reconcile/schemas/treepath"
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

// durableWriter is the state of one call of this package.
type durableWriter struct {
	root    *os.Root
	tmp     string
	checked map[string]bool // folders that exist
	absent  map[string]bool // folders that did not exist while staging; nothing is below them
	folders folders         // handles, so that a batch does not walk the same path for every file
	dirty   []string        // folders with a changed entry, in order of first change
	temps   []string        // temporary files that may have to be removed
}

func newWriter(root *os.Root, tmpDir string) *durableWriter {
	w := &durableWriter{root: root, tmp: path.Clean(tmpDir), folders: folders{root: root}}
	w.forget()
	return w
}

// wholeWrite returns content in one part.
func wholeWrite(data []byte) iter.Seq[[]byte] { return slices.Values([][]byte{data}) }

// stage writes the parts to a temporary file with the mode that the target has or will have, and returns its name.
func (w *durableWriter) stage(target string, parts iter.Seq[[]byte], sync bool) (string, error) {
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
func (w *durableWriter) create(name string, parts iter.Seq[[]byte], mode fs.FileMode, sync bool) error {
	return w.createFrom(name, cmp.Or(mode, DefaultMode), sync, func(f *os.File) error {
		for part := range parts {
			if _, err := f.Write(part); err != nil {
				return err
			}
		}
		return nil
	})
}

// rename makes the folders of target and renames temp over it. Another process may remove an empty folder between
// the two, so it tries again.
func (w *durableWriter) rename(target, temp string) (err error) {
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

// createFrom is create for content that fill writes.
func (w *durableWriter) createFrom(name string, mode fs.FileMode, sync bool, fill func(*os.File) error) (err error) {
	f, err := w.folders.create(name, mode)
	if err != nil {
		return err
	}
	defer func() {
		if cerr := f.Close(); err == nil {
			err = cerr
		}
		if err != nil {
			_ = w.root.Remove(name)
		}
	}()
	if err := fill(f); err != nil {
		return err
	}
	if mode != DefaultMode {
		if err := f.Chmod(mode); err != nil {
			return err
		}
	}
	if sync {
		return f.Sync()
	}
	return nil
}

func (w *durableWriter) remove(op Op) error {
	err := w.root.Remove(op.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fail("remove", op.Path, err)
	}
	w.touch(path.Dir(op.Path))
	if op.Stop == "" {
		return nil
	}
	if err := w.prune(path.Dir(op.Path), path.Clean(op.Stop)); err != nil {
		return fail("remove the folder of", op.Path, err)
	}
	return nil
}

// vet checks that target may be written and returns its mode, or 0 if it does not exist.
func (w *durableWriter) vet(target string) (fs.FileMode, error) {
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

func (w *durableWriter) touch(dir string) {
	if !slices.Contains(w.dirty, dir) {
		w.dirty = append(w.dirty, dir)
	}
}

// Scratch creates a scratch file in tmpDir for reading and writing data that is too large for memory. It has no name, so
// that it is removed when it is closed or the program ends; on systems that cannot remove an open file, [Sweep] removes it
// later.
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

func ignoreMissing(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Advise adds advice, a hint at the next step, to an error of the file system. Any other error, and one with advice, is
// returned unchanged.
func Advise(err error) error {
	var before *advised
	hint := hint(err)
	if hint == "" || errors.As(err, &before) {
		return err
	}
	return &advised{err, hint}
}

// advised is an error with its next step.
type advised struct {
	err  error
	hint string
}

func (e *advised) Error() string { return e.err.Error() + " (" + e.hint + ")" }
func (e *advised) Unwrap() error { return e.err }

func hint(err error) string {
	switch {
	case errors.Is(err, syscall.ENOSPC):
		return "the disk is full; what was there is unchanged: free some space and run again"
	case errors.Is(err, syscall.EDQUOT):
		return "your share of the disk is full; what was there is unchanged: free some space and run again"
	case errors.Is(err, syscall.EROFS):
		return "the file system is mounted read-only: remount it or check the disk for errors"
	case errors.Is(err, syscall.EIO):
		return "the disk reports an error; what was there is unchanged: check the disk, then run again"
	case errors.Is(err, fs.ErrPermission):
		return "check who owns the folder and what its mode is"
	}
	return ""
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

// fail returns an error with the path, the cause and, if known, the next step.
func fail(verb, path string, err error) error {
	return Advise(fmt.Errorf("%s %s: %w", verb, path, err))
}
