package state

import (
	"fmt"
	"path"
	"slices"
	"sync"
)

// Identity is the stat of a file: while it is the same, the content is the same, unless the file was changed again within
// a tick of the file system's clock.
type Identity = stat

// IsFile reports whether the form of the identity, which is a stat, is that of a regular file.
func (s Identity) IsFile() bool { return s.form() == formFile }

// IsFolder reports whether the form of the identity, which is a stat, is that of a folder.
func (s Identity) IsFolder() bool { return s.form() == formFolder }

// ListFolder calls each for every entry of a folder of the tree, in any order, without opening or following it. The name
// is valid during the call. If the folder does not exist, or is a link, the error is one of package fs.
func (s *Store) ListFolder(dir string, each func(name []byte, id Identity)) error {
	d, err := openFolder(s.root, dir)
	if err != nil {
		return err
	}
	defer d.close()
	return d.each(new(listing), func(i int, l *listing) {
		var st stat
		if d.stat(l.name(i), &st) == nil { // else it was removed
			each(l.name(i), st)
		}
	}, dir)
}

// ListFolder is Store.ListFolder for a folder at a slash path below this one, "." for itself, for walks: of a subfolder
// it reports only the form. It is safe for concurrent use.
func (f *Folder) ListFolder(dir string, each func(name []byte, id Identity)) error {
	d, err := f.d.below(dir)
	if err != nil {
		return err
	}
	defer d.close()
	l, ok := f.spare.Get().(*listing)
	if !ok {
		l = new(listing)
	}
	defer f.spare.Put(l)
	return d.each(l, func(i int, l *listing) {
		st := stat{Mode: uint32(l.forms[i]) << formShift}
		if l.forms[i] == formFolder || d.stat(l.name(i), &st) == nil { // else it was removed
			each(l.name(i), st)
		}
	}, dir)
}

// each calls do for all names of a folder at a path.
func (d *folder) each(l *listing, each func(i int, l *listing), p string) (err error) {
	for more := true; more; {
		l.reset()
		if more, err = d.list(l); err != nil {
			return fmt.Errorf("list %s: %w", p, err)
		}
		for i := range l.len() {
			each(i, l)
		}
	}
	return nil
}

// Folder is a folder of the tree that is kept open to read several of its files, or to list many folders below it. Only
// ListFolder is safe for concurrent use.
type Folder struct {
	d     *folder
	spare sync.Pool // of *listing
}

// OpenFolder opens a folder of the tree. If it does not exist, or is a link, the error is one of package fs.
func (s *Store) OpenFolder(dir string) (*Folder, error) {
	d, err := openFolder(s.root, dir)
	if err != nil {
		return nil, err
	}
	return &Folder{d: d}, nil
}

// Read reads the content of the regular file with the given name in the folder, of at most limit bytes, as ReadFiles does.
// The content is valid until the next call.
func (f *Folder) Read(name string, limit int64) ([]byte, error) {
	data, _, err := f.d.read(name, limit)
	return data, err
}

// Lstat returns the stat of the file with the given name in the folder, as an Identity, without following a link.
func (f *Folder) Lstat(name string) (id Identity, err error) {
	err = f.d.stat(append([]byte(name), 0)[:len(name)], &id)
	return id, err
}

// Lstat returns the stat of the file at path p below the root, as an Identity, without following a link.
func (s *Store) Lstat(p string) (Identity, error) { return lstat(s.root, p) }

// Close closes the folder.
func (f *Folder) Close() { f.d.close() }

// ReadFiles reads the regular files with these names in the folder dir, one after the other, and calls each for every name.
// It does not follow links. each gets the content, which is valid during the call, and the file's stat from just before; or
// an error of package fs, if the file does not exist, is not regular, or is larger than limit.
func (s *Store) ReadFiles(dir string, limit int64, names []string, each func(name string, data []byte, id Identity, err error)) {
	d, err := openFolder(s.root, dir)
	if err != nil {
		for _, name := range names {
			each(name, nil, Identity{}, err)
		}
		return
	}
	defer d.close()
	for _, name := range names {
		data, id, err := d.read(name, limit)
		each(name, data, id, err)
	}
}

// ReadFile reads the regular file at path p of the tree, of at most limit bytes, and returns its data and identity. It reads
// as ReadFiles does; the caller owns the data.
func (s *Store) ReadFile(p string, limit int64) (data []byte, id Identity, err error) {
	s.ReadFiles(path.Dir(p), limit, []string{path.Base(p)}, func(_ string, d []byte, i Identity, e error) {
		data, id, err = slices.Clip(d), i, e // the folder with the buffer is closed
	})
	if err != nil {
		return nil, id, fmt.Errorf("read %s: %w", p, err)
	}
	return data, id, nil
}

// ReadFileInto reads the file at p into buf, or into a larger buffer if the data does not fit, and returns the data and the
// file's identity. The result has the content's length.
func (s *Store) ReadFileInto(buf []byte, p string, limit int64) ([]byte, Identity, error) {
	d, err := openFolder(s.root, path.Dir(p))
	if err != nil {
		return nil, Identity{}, fmt.Errorf("read %s: %w", p, err)
	}
	defer d.close()
	d.use(buf)
	data, id, err := d.read(path.Base(p), limit)
	if err != nil {
		return nil, id, fmt.Errorf("read %s: %w", p, err)
	}
	return data, id, nil
}
