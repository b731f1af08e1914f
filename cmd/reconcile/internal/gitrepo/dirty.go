package gitrepo

import (
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/regular"
)

// Lister returns the names in a folder of the work tree that the caller has just read; ok is false for other folders. It
// may leave out empty folders and hidden files.
type Lister func(dir string) (names []state.Listed, ok bool)

func (n *native) dirty(ctx context.Context, branch string, prefixes []string, listed Lister) ([]string, error) {
	scan, err := n.newScan(ctx, branch)
	if err != nil {
		return nil, err
	}
	scan.listed = listed
	defer scan.store.close()
	root, err := regular.Root(n.worktree)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	scan.disk = root
	for _, p := range prefixes {
		was, err := scan.store.file(scan.tree, p)
		if err != nil {
			return nil, err
		}
		if err := scan.compare(p, was); err != nil {
			return nil, err
		}
	}
	slices.Sort(scan.found)
	return slices.Compact(scan.found), nil
}

// dirtyScan compares folders of the work tree with a commit's tree.
type dirtyScan struct {
	ctx      context.Context
	store    *objectStore
	tree     plumbing.Hash
	index    *index
	written  fileTime // mtime of the index: newer entries are not trusted
	rules    *rules
	fileMode bool
	disk     *os.Root
	listed   Lister
	cached   map[string]*cacheTree // those of the index, by path
	found    []string
}

func (n *native) newScan(ctx context.Context, branch string) (*dirtyScan, error) {
	cfg, err := loadConfig(n.layout, n.git)
	if err != nil {
		return nil, err
	}
	head, err := n.baseOf(branch)
	if err != nil {
		return nil, err
	}
	s := &dirtyScan{ctx: ctx, store: newObjectStore(n.layout), rules: newRules(ctx, n.layout, cfg)}
	s.fileMode = cfg.flag(ctx, "core.filemode", true)
	data, _, written, err := readIndex(filepath.Join(n.gitDir, "index"))
	if err != nil {
		return nil, err
	}
	s.written = written
	if s.tree, err = s.store.treeOf(head); err != nil {
		s.store.close()
		return nil, err
	}
	if s.index, err = parseIndex(data); err != nil {
		s.index = &index{version: 2} // only an optimization here
	}
	s.cached = map[string]*cacheTree{}
	s.index.folders.collect("", s.cached)
	return s, nil
}

// entries returns the entries of a folder of the branch. It reads no object if the index has the same entries.
func (s *dirtyScan) entries(path string, hash plumbing.Hash) ([]treeEntry, error) {
	if c := s.cached[path]; c != nil && c.files >= 0 && c.hash == hash {
		if entries, ok := s.index.treeEntries(path, c, s.cached); ok {
			return entries, nil
		}
	}
	return s.store.tree(hash)
}

// compare finds the differences at path, where was is the branch's entry: a file, a folder or nothing.
func (s *dirtyScan) compare(path string, was blob) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	fi, err := s.disk.Lstat(filepath.FromSlash(path))
	switch {
	case errors.Is(err, os.ErrNotExist), isNotDir(err):
		return s.gone(path, was)
	case err != nil:
		return err
	case fi.IsDir():
		return s.folder(s.disk, filepath.FromSlash(path), path, was)
	case was.mode == modeTree:
		if err := s.gone(path, was); err != nil {
			return err
		}
		was = blob{}
	}
	return s.fileOnDisk(path, fi, was)
}

// folder compares an existing folder, given by its name in parent. Each folder is opened once: resolving the path
// from the top of the work tree for each file costs more than everything else.
func (s *dirtyScan) folder(parent *os.Root, name, path string, was blob) error {
	if was.mode == 0 && s.rules.ignoredFolder(path) || was.mode != 0 && was.mode != modeTree {
		return nil
	}
	if err := s.ctx.Err(); err != nil {
		return err
	}
	entries, err := s.entries(path, was.hash)
	if err != nil {
		return err
	}
	if s.listed != nil {
		if names, ok := s.listed(path); ok {
			return s.listedFolder(path, names, entries)
		}
	}
	here, err := parent.OpenRoot(name)
	if errors.Is(err, os.ErrNotExist) {
		return s.gone(path, was)
	}
	if err != nil {
		return err
	}
	defer here.Close()
	names, err := regular.List(here, ".")
	if err != nil {
		return err
	}
	there := make(map[string]bool, len(names))
	for _, d := range names {
		there[d.Name()] = true
		if neverCommitted(d.Name()) {
			continue
		}
		if err := s.compareEntry(here, path+"/"+d.Name(), d, childTree(entries, d.Name())); err != nil {
			return err
		}
	}
	return s.missing(path, entries, there)
}

// listedFolder compares a folder that the caller has read.
func (s *dirtyScan) listedFolder(path string, names []state.Listed, entries []treeEntry) error {
	there := make(map[string]bool, len(names))
	for i := range names {
		d := &names[i]
		there[d.Name] = true
		if neverCommitted(d.Name) {
			continue
		}
		at, was := path+"/"+d.Name, childTree(entries, d.Name)
		var err error
		switch {
		case d.Folder:
			err = s.folder(s.disk, filepath.FromSlash(at), at, was)
		case d.Other || was.mode == modeTree:
			err = s.compare(at, was)
		default:
			err = s.file(at, statOfListed(&d.Stat), d.Executable, was)
		}
		if err != nil {
			return err
		}
	}
	return s.missing(path, entries, there)
}

// missing reports the entries of a folder of the branch that do not exist on disk.
func (s *dirtyScan) missing(path string, entries []treeEntry, there map[string]bool) error {
	for _, e := range entries {
		if !there[e.name] && !neverCommitted(e.name) {
			if err := s.gone(path+"/"+e.name, e.blob); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *dirtyScan) compareEntry(in *os.Root, path string, d fs.DirEntry, was blob) error {
	switch {
	case d.IsDir():
		return s.folder(in, d.Name(), path, was)
	case was.mode == modeTree:
		return s.compare(path, was)
	}
	fi, err := d.Info()
	if errors.Is(err, os.ErrNotExist) {
		return s.gone(path, was)
	}
	if err != nil {
		return err
	}
	return s.fileOnDisk(path, fi, was)
}

// neverCommitted reports whether a name is never committed: hidden, or a lock file.
func neverCommitted(name string) bool { return name[0] == '.' || strings.HasSuffix(name, ".lock") }

// fileOnDisk compares an existing file. Files that are not regular are ignored.
func (s *dirtyScan) fileOnDisk(path string, fi os.FileInfo, was blob) error {
	if !fi.Mode().IsRegular() {
		return nil
	}
	return s.file(path, statOf(fi), fi.Mode()&0o100 != 0, was)
}

// file compares an existing regular file. Entries of the branch that are not regular files are ignored.
func (s *dirtyScan) file(path string, st fileStat, exec bool, was blob) error {
	if was.mode != 0 && was.mode != modeFile && was.mode != modeExec {
		return nil
	}
	if was.mode == 0 {
		if !s.rules.ignored(path) {
			s.found = append(s.found, path)
		}
		return nil
	}
	hash, known := s.indexed(path, st)
	if !known {
		data, err := regular.Read(s.disk, filepath.FromSlash(path))
		if errors.Is(err, os.ErrNotExist) {
			return s.gone(path, was)
		}
		if err != nil {
			return err
		}
		if hash, err = s.stored(path, data); err != nil { // only git can decide
			s.found = append(s.found, path)
			return nil
		}
	}
	if hash != was.hash || s.fileMode && exec != (was.mode == modeExec) {
		s.found = append(s.found, path)
	}
	return nil
}

// stored returns the hash by which git stores a file with this content.
func (s *dirtyScan) stored(path string, data []byte) (plumbing.Hash, error) {
	c := s.rules.conversion(path)
	if c.filter {
		return plumbing.ZeroHash, &needsGit{path + " has a filter"}
	}
	data, err := c.clean(data, func() []byte { return indexContent(s.index, s.store, path) })
	return hashObject(plumbing.BlobObject, data), err
}

// indexed returns the file's hash from the index if its stat data prove that the file did not change since.
func (s *dirtyScan) indexed(path string, st fileStat) (plumbing.Hash, bool) {
	e, conflict := s.index.find(path)
	if e.fixed == nil || conflict || !st.matches(e.fixed) || binary.BigEndian.Uint32(e.fixed[sizeOffset:]) == 0 {
		return plumbing.ZeroHash, false
	}
	mtime := mtimeOf(e.fixed)
	if mtime.sec >= s.written.sec && (mtime.nsec == 0 || !mtime.before(s.written)) {
		return plumbing.ZeroHash, false
	}
	return e.blob().hash, true
}

// gone reports the branch's files that do not exist on disk, except those excluded by a sparse checkout.
func (s *dirtyScan) gone(path string, was blob) error {
	switch was.mode {
	case modeTree:
		entries, err := s.entries(path, was.hash)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if neverCommitted(e.name) {
				continue
			}
			if err := s.gone(path+"/"+e.name, e.blob); err != nil {
				return err
			}
		}
	case modeFile, modeExec:
		if e, _ := s.index.find(path); e.fixed == nil || e.extended()&flagSkip == 0 {
			s.found = append(s.found, path)
		}
	}
	return nil
}

// lstat returns the stat data of a path of the work tree.
func (n *native) lstat(path string) (fileStat, bool) {
	fi, err := os.Lstat(filepath.Join(n.worktree, filepath.FromSlash(path)))
	if err != nil {
		return fileStat{}, false
	}
	return statOf(fi), true
}

// lstatBelow is Lstat for a path none of whose parents may be a symlink or a file.
func lstatBelow(root *os.Root, p string) (os.FileInfo, error) {
	for i, c := range p {
		if c != '/' {
			continue
		}
		fi, err := root.Lstat(filepath.FromSlash(p[:i]))
		if err != nil {
			return nil, err
		}
		if !fi.IsDir() {
			return nil, errNotFolder
		}
	}
	return root.Lstat(filepath.FromSlash(p))
}

// Dirty lists the files below the prefixes (slash paths below the directory given to Open: folders, or single
// files) that differ from the branch ("" is the checked-out branch): changed, new or gone, sorted. Names that begin
// with a dot or end in .lock, and untracked files that match .gitignore, are left out. Contents are compared only
// where the index's stat data are not conclusive.
func (r *Repo) Dirty(ctx context.Context, branch string, prefixes []string) ([]string, error) {
	return r.DirtyListed(ctx, branch, prefixes, nil)
}

// DirtyAt lists those of the paths, below the top of the work tree, whose files differ from the branch that is checked out,
// or are untracked.
func (r *Repo) DirtyAt(ctx context.Context, paths []string) ([]string, error) {
	var found []string
	err := r.do(func(c committer) (err error) {
		found, err = c.dirty(ctx, "", paths, nil)
		return err
	})
	return found, err
}

// DirtyListed is Dirty for a caller that has just read folders, which are not read again. The paths of listed are slash
// paths below the directory given to Open.
func (r *Repo) DirtyListed(ctx context.Context, branch string, prefixes []string, listed Lister) ([]string, error) {
	below, err := r.below(prefixes)
	if err != nil {
		return nil, err
	}
	from := listed
	if listed != nil && r.prefix != "" {
		from = func(dir string) ([]state.Listed, bool) {
			dir, ok := strings.CutPrefix(dir, r.prefix)
			if !ok {
				return nil, false
			}
			return listed(dir)
		}
	}
	var found []string
	err = r.do(func(c committer) (err error) {
		found, err = c.dirty(ctx, branch, below, from)
		return err
	})
	for i, p := range found {
		found[i] = strings.TrimPrefix(p, r.prefix)
	}
	return found, err
}
