package state

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/treepath"
	"reconcile.dev/reconcile/state/disk"
)

// Identity is the stat of a file: while it is the same, the content is the same, unless the file was changed again within
// a tick of the file system's clock.
type Identity = disk.Stat

// ListFolder calls each for every entry of a folder of the tree, in any order, without opening or following it. The name
// is valid during the call. If the folder does not exist, or is a link, the error is one of package fs.
func (s *Store) ListFolder(dir string, each func(name []byte, id Identity)) error {
	d, err := disk.OpenDir(s.root, dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Each(new(disk.Listing), func(i int, l *disk.Listing) {
		var st disk.Stat
		if d.Stat(l.Name(i), &st) == nil { // else it was removed
			each(l.Name(i), st)
		}
	}, dir)
}

// ListFolder is Store.ListFolder for a folder at a slash path below this one, "." for itself, for walks: of a subfolder
// it reports only the form. It is safe for concurrent use.
func (f *Folder) ListFolder(dir string, each func(name []byte, id Identity)) error {
	d, err := f.d.Below(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	l, ok := f.spare.Get().(*disk.Listing)
	if !ok {
		l = new(disk.Listing)
	}
	defer f.spare.Put(l)
	return d.Each(l, func(i int, l *disk.Listing) {
		st := disk.StatOfForm(l.Forms[i])
		if l.Forms[i] == disk.Folder || d.Stat(l.Name(i), &st) == nil { // else it was removed
			each(l.Name(i), st)
		}
	}, dir)
}

// Folder is a folder of the tree that is kept open to read several of its files, or to list many folders below it. Only
// ListFolder is safe for concurrent use.
type Folder struct {
	d     *disk.Dir
	spare sync.Pool // of *listing
}

// OpenFolder opens a folder of the tree. If it does not exist, or is a link, the error is one of package fs.
func (s *Store) OpenFolder(dir string) (*Folder, error) {
	d, err := disk.OpenDir(s.root, dir)
	if err != nil {
		return nil, err
	}
	return &Folder{d: d}, nil
}

// Read reads the content of the regular file with the given name in the folder, of at most limit bytes, as ReadFiles does.
// The content is valid until the next call.
func (f *Folder) Read(name string, limit int64) ([]byte, error) {
	data, _, err := f.d.Read(name, limit)
	return data, err
}

// Lstat returns the stat of the file with the given name in the folder, as an Identity, without following a link.
func (f *Folder) Lstat(name string) (id Identity, err error) {
	err = f.d.Stat(append([]byte(name), 0)[:len(name)], &id)
	return id, err
}

// Lstat returns the stat of the file at path p below the root, as an Identity, without following a link.
func (s *Store) Lstat(p string) (Identity, error) { return disk.Lstat(s.root, p) }

// Close closes the folder.
func (f *Folder) Close() { f.d.Close() }

// ReadFiles reads the regular files with these names in the folder dir, one after the other, and calls each for every name.
// It does not follow links. each gets the content, which is valid during the call, and the file's stat from just before; or
// an error of package fs, if the file does not exist, is not regular, or is larger than limit.
func (s *Store) ReadFiles(dir string, limit int64, names []string, each func(name string, data []byte, id Identity, err error)) {
	d, err := disk.OpenDir(s.root, dir)
	if err != nil {
		for _, name := range names {
			each(name, nil, Identity{}, err)
		}
		return
	}
	defer d.Close()
	for _, name := range names {
		data, id, err := d.Read(name, limit)
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
	d, err := disk.OpenDir(s.root, path.Dir(p))
	if err != nil {
		return nil, Identity{}, fmt.Errorf("read %s: %w", p, err)
	}
	defer d.Close()
	d.Use(buf)
	data, id, err := d.Read(path.Base(p), limit)
	if err != nil {
		return nil, id, fmt.Errorf("read %s: %w", p, err)
	}
	return data, id, nil
}

// followLink returns the stat of the target of the link at p, which must be a regular file of the tree.
func followLink(root *os.Root, p string) (disk.Stat, error) {
	to, err := resolveLink(root, p)
	if err != nil {
		return disk.Stat{}, err
	}
	st, err := disk.Lstat(root, to)
	switch {
	case err != nil:
		return disk.Stat{}, errors.New("it is a symbolic link that leads nowhere")
	case st.Form() != disk.File:
		return disk.Stat{}, errors.New("it is a symbolic link to something that is not a regular file")
	}
	return st, nil
}

var (
	errLinkOut   = errors.New("it is a symbolic link that leaves the tree; copy the file, or link to one in the tree")
	errLinkLoop  = errors.New("it is a symbolic link that leads to itself")
	errLinkLocal = errors.New("it is a symbolic link into .git or .reconcile, which are no part of the tree")
)

// resolveLink follows all links in a slash path below root and returns the resulting path.
func resolveLink(root *os.Root, p string) (string, error) {
	done, rest := ".", p
	for links := 0; rest != ""; {
		part, after, _ := strings.Cut(rest, "/")
		rest = after
		switch part {
		case "", ".":
			continue
		case "..":
			if done == "." {
				return "", errLinkOut
			}
			done = path.Dir(done)
			continue
		}
		if treepath.OfName(part) != treepath.User {
			return "", errLinkLocal
		}
		at := path.Join(done, part)
		target, err := root.Readlink(at)
		if err != nil { // not a link, or missing: the caller's next access reports it
			done = at
			continue
		}
		if links++; links > 40 {
			return "", errLinkLoop
		}
		if path.IsAbs(target) || strings.Contains(target, `\`) {
			return "", errLinkOut
		}
		rest = target + "/" + rest
	}
	return done, nil
}

// ErrFolder says that one of the tree's own folders is a link, or is not a folder.
var ErrFolder = errors.New("not a folder of the tree")

// CheckFolders reports an error if a folder of the layout is a link or another file: that of specs, of state or of local
// files. The error wraps ErrFolder. Links are rejected regardless of their target: reads and writes through them could leave
// the tree, and git stores only the link.
func (s *Store) CheckFolders() error { return s.checkFolders(s.layout()) }

func (s *Store) checkFolders(l *layout) error {
	for _, f := range []struct{ path, field string }{{l.specs, "folders.specs"}, {l.state, "folders.state"}, {localDir, ""}} {
		if err := s.checkFolder(f.path, f.field); err != nil {
			return err
		}
	}
	return nil
}

// checkFolder checks a folder and the existing folders above it.
func (s *Store) checkFolder(p, field string) error {
	at := ""
	for part := range strings.SplitSeq(p, "/") {
		at = strings.TrimPrefix(at+"/"+part, "/")
		fi, err := s.root.Lstat(at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return fmt.Errorf("look at %s: %w", at, err)
		case fi.IsDir():
			continue
		}
		is := "is not a folder"
		if fi.Mode()&fs.ModeSymlink != 0 {
			is = "is a symbolic link, and what is behind it is not kept with the tree"
		}
		instead := "remove it"
		if field != "" {
			instead = "put the folder itself there, or name another as " + field + " in " + schemas.SettingsPath
		}
		return &folderError{fmt.Sprintf("%s %s; %s", at, is, instead)}
	}
	return nil
}

// folderError is an ErrFolder with its own text.
type folderError struct{ text string }

func (e *folderError) Error() string        { return e.text }
func (e *folderError) Is(target error) bool { return target == ErrFolder }

// checkLink validates a symbolic link. In specs/ a link may lead to a regular file of the tree; elsewhere links are
// rejected.
func (s *treeScanner) checkLink(p *scanFolder, name []byte, a area, v visitor) {
	at := p.dir + "/" + string(name)
	if a != areaSpecs {
		v.scanError(scanError{at, "symlink", "it is a symbolic link; state is kept in regular files only"})
		return
	}
	st, err := followLink(s.root, at)
	if err != nil {
		v.scanError(scanError{at, "symlink", err.Error()})
		return
	}
	v.file(a, p.dir, name, &st)
}

// checkFolderLink reports a link in specs/ that could hide specs: it leads to a folder, or out of the tree.
func (s *treeScanner) checkFolderLink(p *scanFolder, name []byte, v visitor) {
	at := p.dir + "/" + string(name)
	to, err := resolveLink(s.root, at)
	if err != nil {
		v.scanError(scanError{at, "symlink", err.Error()})
		return
	}
	if st, err := disk.Lstat(s.root, to); err == nil && st.Form() == disk.Folder {
		v.scanError(scanError{at, "symlink", "it is a symbolic link to a folder, and such are not followed; link the files"})
	}
}
