package durable

import (
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"slices"
	"syscall"
	"time"

	"reconcile.dev/reconcile/state/regular"
)

// Replace atomically replaces the target file below root with the concatenated parts, but syncs nothing. It is for derived
// files, which are validated when they are read. A reader sees the complete old or new content; after a power loss the file
// may have the old or new content, be empty, or be missing.
func Replace(root *os.Root, tmpDir, target string, parts ...[]byte) error {
	d, err := NewDraft(root, tmpDir, target, slices.Values(parts))
	if err != nil {
		return err
	}
	defer d.Discard()
	return d.Place()
}

// Draft is the new content of one file, not synced and not yet in place.
type Draft struct {
	w      *durableWriter
	target string
	temp   string // the file to remove: the draft, or the file that it replaced; "": none
}

// NewDraft stages a draft of the target file: it writes the parts to a temporary file in tmpDir. This is the first half of
// Replace, which is all of its work for large content. Place puts the draft in place; Discard must be called at the end,
// whether placed or not.
func NewDraft(root *os.Root, tmpDir, target string, parts iter.Seq[[]byte]) (*Draft, error) {
	w := newWriter(root, tmpDir)
	temp, err := w.stage(target, parts, false)
	if err != nil {
		w.folders.close()
		return nil, err
	}
	return &Draft{w, target, temp}, nil
}

// SetTime sets the draft's modification time, before Place.
func (d *Draft) SetTime(at time.Time) error { return d.w.root.Chtimes(d.temp, time.Time{}, at) }

// Place puts the draft in place. It is called once. It leaves the removal of the old file to Discard: for a large file
// that takes longer than everything else.
func (d *Draft) Place() error {
	defer d.w.folders.close()
	err := d.w.makeDir(path.Dir(d.target), false)
	if err == nil {
		if err = d.w.folders.exchange(d.temp, d.target); err == nil {
			return nil // the temporary file is now the old file
		}
	}
	if !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EXDEV) {
		return fail("write", d.target, err)
	}
	temp := d.temp
	d.temp = ""
	return d.w.place(d.target, temp)
}

// Discard removes the draft's temporary file and closes its folders. The file is the draft, or the one that it replaced. A
// second call does nothing.
func (d *Draft) Discard() {
	if d.temp != "" {
		_ = d.w.root.Remove(d.temp)
		d.temp = ""
	}
	d.w.folders.close()
}

// place renames a synced temporary file over target, and removes it if that fails.
func (w *durableWriter) place(target, temp string) error {
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

// placeBeside places content from a temporary folder on another file system than target: it copies the content to a file
// next to the target. The note leads Sweep to that file if this process dies here.
func (w *durableWriter) placeBeside(target, temp string) error {
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
	if err := w.create(note, wholeWrite([]byte(beside)), 0, true); err != nil {
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
func (w *durableWriter) link(target, temp string) error {
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
