//go:build !linux

package disk

import (
	"errors"
	"io"
	"os"

	"reconcile.dev/reconcile/state/regular"
)

// Dir is an open directory. All access goes through its own [os.Root], so that no path leads out of the tree.
type Dir struct {
	root *os.Root
	dir  *os.File // for list
}

// OpenDir opens the folder at a slash path below root; "." is the root itself. No folder on the way may be a link.
func OpenDir(root *os.Root, p string) (*Dir, error) {
	r, err := root.OpenRoot(p)
	if err != nil {
		return nil, err
	}
	return &Dir{root: r}, nil
}

// Below opens the folder at a slash path below d; "." opens d again.
func (d *Dir) Below(p string) (*Dir, error) { return OpenDir(d.root, p) }

// Sub opens a folder in d.
func (d *Dir) Sub(name string) (*Dir, error) {
	fi, err := d.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !fi.IsDir() {
		return nil, &os.PathError{Op: "open", Path: name, Err: errors.New("not a folder")}
	}
	return OpenDir(d.root, name)
}

// Close closes the folder.
func (d *Dir) Close() {
	if d.dir != nil {
		_ = d.dir.Close()
	}
	_ = d.root.Close()
}

// List adds the next names of the folder to l, some hundreds or thousands; more is false at the end.
func (d *Dir) List(l *Listing) (more bool, err error) {
	if d.dir == nil {
		if d.dir, err = regular.Folder(d.root, "."); err != nil {
			return false, err
		}
	}
	entries, err := d.dir.ReadDir(1024)
	for _, e := range entries {
		l.add([]byte(e.Name()), formOfMode(e.Type()))
	}
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	return err == nil, err
}

// Stat reads the stat of a name in the folder without following a link. name must come from a listing.
func (d *Dir) Stat(name []byte, st *Stat) error {
	s, err := Lstat(d.root, string(name))
	*st = s
	return err
}

// Read returns the content of a regular file at a slash path below d, and its stat from just before. It does not read
// other types of files, nor block on them. The content is valid until the next read in the same folder.
func (d *Dir) Read(name string, limit int64) ([]byte, Stat, error) {
	if st, err := Lstat(d.root, name); err != nil || st.Form() != File {
		return nil, st, errors.Join(err, notFile(st))
	}
	f, fi, err := regular.Open(d.root, name)
	if err != nil {
		return nil, Stat{}, err
	}
	defer f.Close()
	st := StatOf(fi)
	if st.Size > limit {
		return nil, st, ErrTooLarge
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = ErrTooLarge
	}
	return b, st, err
}

func notFile(st Stat) error {
	if st.Form() == File || st == (Stat{}) {
		return nil
	}
	return ErrNotFile
}

// Use does nothing on this system: each read has its own buffer.
func (d *Dir) Use([]byte) {}
