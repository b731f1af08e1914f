package state

import (
	"context"
	"fmt"
	"iter"
	"path"
	"slices"
	"sync"

	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/lock"
)

// Identity is what the file system says of a file: while it is the same, so is the content, unless the file was changed
// again within a tick of the file system's clock.
type Identity = stat

// IsFile reports whether what was looked at is a regular file.
func (s Identity) IsFile() bool { return s.form() == formFile }

// IsFolder reports whether what was looked at is a folder.
func (s Identity) IsFolder() bool { return s.form() == formFolder }

// LookInto calls each for everything in a folder of the tree, in no order, without opening or following any of it. The
// name is valid during the call. A folder that does not exist, or that a link leads to, is an error of package fs.
func (s *Store) LookInto(dir string, each func(name []byte, id Identity)) error {
	d, err := openFolder(s.root, dir)
	if err != nil {
		return err
	}
	defer d.close()
	return d.look(new(listing), func(i int, l *listing) {
		var st stat
		if d.stat(l.name(i), &st) == nil { // else it is gone already
			each(l.name(i), st)
		}
	}, dir)
}

// look calls each for all names of a folder at a path.
func (d *folder) look(l *listing, each func(i int, l *listing), p string) (err error) {
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

// Folder is a folder of the tree that is kept open, for reading several files of it, or for looking into many folders
// below it. But for LookInto, it is for one goroutine.
type Folder struct {
	d     *folder
	spare sync.Pool // of *listing
}

// OpenFolder opens a folder of the tree. One that does not exist, or that a link leads to, is an error of package fs.
func (s *Store) OpenFolder(dir string) (*Folder, error) {
	d, err := openFolder(s.root, dir)
	if err != nil {
		return nil, err
	}
	return &Folder{d: d}, nil
}

// LookInto is Store.LookInto for a folder at a slash path below this one, "." for itself, for walks: of a folder in it is
// only told that it is one. Any number of goroutines may call it.
func (f *Folder) LookInto(dir string, each func(name []byte, id Identity)) error {
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
	return d.look(l, func(i int, l *listing) {
		st := stat{Mode: uint32(l.forms[i]) << formShift}
		if l.forms[i] == formFolder || d.stat(l.name(i), &st) == nil { // else it is gone already
			each(l.name(i), st)
		}
	}, dir)
}

// Read reads a regular file of the folder as ReadFiles does. The content is valid until the next call.
func (f *Folder) Read(name string, limit int64) ([]byte, error) {
	data, _, err := f.d.read(name, limit)
	return data, err
}

// LookAt looks at a file of the folder without following a link.
func (f *Folder) LookAt(name string) (id Identity, err error) {
	err = f.d.stat(append([]byte(name), 0)[:len(name)], &id)
	return id, err
}

// Close gives the folder up.
func (f *Folder) Close() { f.d.close() }

// ReadFiles reads regular files of one folder of the tree, one after the other; no link is followed. each gets the
// content, which is valid during the call, and what the system said of the file just before; or the error, one of package
// fs, when it does not exist, is something else, or is larger than limit.
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

// ReadFile is ReadFiles for one file; the content is the caller's.
func (s *Store) ReadFile(p string, limit int64) (data []byte, id Identity, err error) {
	s.ReadFiles(path.Dir(p), limit, []string{path.Base(p)}, func(_ string, d []byte, i Identity, e error) {
		data, id, err = slices.Clip(d), i, e // the folder that owns it is closed, and nothing reads into it again
	})
	if err != nil {
		return nil, id, fmt.Errorf("read %s: %w", p, err)
	}
	return data, id, nil
}

// ReadFileInto is ReadFile that reads into buf where the content has room in it, and else into a larger one, which is
// returned with the content's length.
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

// LookAt looks at a file of the tree without following a link.
func (s *Store) LookAt(p string) (Identity, error) { return lstat(s.root, p) }

// LockFile takes the AgentX lock of a file that programs of other makes may write, too. Who changes a file by its content
// uses Fold; this is for files that are derived from others.
func (s *Store) LockFile(ctx context.Context, p string) (*lock.Lock, error) {
	if err := s.ensureLocal(tmpDir); err != nil {
		return nil, err
	}
	return s.acquire(ctx, p, s.lockOptions())
}

// Replace puts a file that can be made again in the place of an old one: readers see the old or the new, whole, and after
// a loss of power perhaps neither. A file under .reconcile needs no lock; of one under state/ the caller has it. The
// content is what the parts are, one after the other.
func (s *Store) Replace(p string, parts ...[]byte) error {
	if err := s.ensureLocal(tmpDir); err != nil {
		return err
	}
	return durable.Replace(s.root, tmpDir, p, parts...)
}

// Sketch is the first half of Replace: it writes the content, in parts, and leaves it to the caller to put it in place.
func (s *Store) Sketch(p string, parts iter.Seq[[]byte]) (*durable.Draft, error) {
	if err := s.ensureLocal(tmpDir); err != nil {
		return nil, err
	}
	return durable.Sketch(s.root, tmpDir, p, parts)
}

// Add writes a file of state/ that can be done without after a loss of power. The error wraps fs.ErrExist, and the file
// is left alone, if there is one of the name.
func (s *Store) Add(p string, data []byte) error {
	if err := s.ensureLocal(tmpDir); err != nil {
		return err
	}
	return durable.Add(s.root, tmpDir, p, data)
}

// Change makes changes of files of state/ durable, in their order: after a crash a first part of them is there. The tree
// must be locked by this store.
func (s *Store) Change(ops []durable.Op) error {
	if err := s.ensureLocal(tmpDir); err != nil {
		return err
	}
	return durable.Apply(s.root, tmpDir, ops)
}

// PutNew writes a file durably unless it exists. was is its content if it does: what to make of that is the caller's
// matter. Processes that work on the tree are told by Announce.
func (s *Store) PutNew(p string, data []byte) (was []byte, err error) {
	return s.PutNewOnce(p, data, func() error { return nil })
}

// PutNewOnce is PutNew for content that may turn out to be wrong while it is written under another name: the file appears
// once ready has returned, and not at all after an error of it. ready is not called where the file exists.
func (s *Store) PutNewOnce(p string, data []byte, ready func() error) (was []byte, err error) {
	if was, err = s.readOrNil(p); err != nil || was != nil {
		return was, err
	}
	if err := s.ensureLocal(tmpDir); err != nil {
		return nil, err
	}
	staged, err := durable.Stage(s.root, tmpDir, p, data)
	if err != nil {
		return nil, err
	}
	if err := ready(); err != nil {
		staged.Discard()
		return nil, err
	}
	return nil, staged.Commit()
}
