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

// Replace puts a file in the place of another as WriteFile does, but syncs nothing: it is for what can be made again from
// other files, and is checked when it is read. A reader sees the old or the new, whole; after a loss of power there may
// be the old one, the new one, one without content, or none. The content is what the parts are, one after the other.
func Replace(root *os.Root, tmpDir, target string, parts ...[]byte) error {
	d, err := Sketch(root, tmpDir, target, slices.Values(parts))
	if err != nil {
		return err
	}
	defer d.Discard()
	return d.Place()
}

// Draft is new content of one file that is not synced and not yet in place.
type Draft struct {
	w      *writer
	target string
	temp   string // what is to be removed: the draft, or the file that it took the place of; "" for nothing
}

// Sketch does the first half of Replace, which is all of its work where the content is large: it writes what the parts
// are. Place puts it in place; in the end Discard must be called, placed or not.
func Sketch(root *os.Root, tmpDir, target string, parts iter.Seq[[]byte]) (*Draft, error) {
	w := newWriter(root, tmpDir)
	temp, err := w.stage(target, parts, false)
	if err != nil {
		w.folders.close()
		return nil, err
	}
	return &Draft{w, target, temp}, nil
}

// Date gives the draft a modification time, before Place.
func (d *Draft) Date(at time.Time) error { return d.w.root.Chtimes(d.temp, time.Time{}, at) }

// Place ends what Sketch began. It is called once. The file that was there is left to Discard: to remove a large one takes
// longer than all else.
func (d *Draft) Place() error {
	defer d.w.folders.close()
	err := d.w.makeDir(path.Dir(d.target), false)
	if err == nil {
		if err = d.w.folders.exchange(d.temp, d.target); err == nil {
			return nil // the temporary file is the old one now
		}
	}
	if !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, syscall.EXDEV) {
		return fail("write", d.target, err)
	}
	temp := d.temp
	d.temp = ""
	return d.w.place(d.target, temp)
}

// Discard removes the temporary file, be it the draft or the file that it took the place of. A second call does nothing.
func (d *Draft) Discard() {
	if d.temp != "" {
		_ = d.w.root.Remove(d.temp)
		d.temp = ""
	}
	d.w.folders.close()
}
