package durable

import (
	"errors"
	"iter"
	"os"
	"path"
	"slices"
	"syscall"
	"time"
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
	w      *writer
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
