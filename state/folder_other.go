//go:build !linux

package state

import (
	"errors"
	"io"
	"os"
	"runtime"

	"reconcile.dev/reconcile/state/regular"
)

// folder is an open directory. All access goes through its own [os.Root], so that no path leads out of the tree.
type folder struct {
	root *os.Root
	dir  *os.File // for list
}

// openFolder opens the folder at a slash path below root; "." is the root itself. No folder on the way may be a link.
func openFolder(root *os.Root, p string) (*folder, error) {
	r, err := root.OpenRoot(p)
	if err != nil {
		return nil, err
	}
	return &folder{root: r}, nil
}

// below opens the folder at a slash path below d; "." opens d again.
func (d *folder) below(p string) (*folder, error) { return openFolder(d.root, p) }

// sub opens a folder in d.
func (d *folder) sub(name string) (*folder, error) {
	fi, err := d.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !fi.IsDir() {
		return nil, &os.PathError{Op: "open", Path: name, Err: errors.New("not a folder")}
	}
	return openFolder(d.root, name)
}

func (d *folder) close() {
	if d.dir != nil {
		_ = d.dir.Close()
	}
	_ = d.root.Close()
}

// list adds the next names of the folder to l, some hundreds or thousands; more is false at the end.
func (d *folder) list(l *listing) (more bool, err error) {
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

// stat reads the stat of a name in the folder without following a link. name must come from a listing.
func (d *folder) stat(name []byte, st *stat) error {
	s, err := lstat(d.root, string(name))
	*st = s
	return err
}

// read returns the content of a regular file at a slash path below d, and its stat from just before. It does not read
// other types of files, nor block on them. The content is valid until the next read in the same folder.
func (d *folder) read(name string, limit int64) ([]byte, stat, error) {
	if st, err := lstat(d.root, name); err != nil || st.form() != formFile {
		return nil, st, errors.Join(err, notFile(st))
	}
	f, fi, err := regular.Open(d.root, name)
	if err != nil {
		return nil, stat{}, err
	}
	defer f.Close()
	st := statOf(fi)
	if st.Size > limit {
		return nil, st, errTooLarge
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(b)) > limit {
		err = errTooLarge
	}
	return b, st, err
}

func notFile(st stat) error {
	if st.form() == formFile || st == (stat{}) {
		return nil
	}
	return errNotFile
}

// use does nothing on this system: each read has its own buffer.
func (d *folder) use([]byte) {}

// syncData makes the content of a file, and its size, durable.
func syncData(f *os.File) error { return f.Sync() }

// syncDir makes the names in an open folder durable, if the system supports it.
func syncDir(d *os.File) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	return d.Sync()
}
