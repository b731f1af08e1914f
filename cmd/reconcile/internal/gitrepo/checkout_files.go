package gitrepo

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"

	"reconcile.dev/reconcile/schemas/treepath"
	"reconcile.dev/reconcile/state/regular"
)

// fewFiles is the number of files up to which this package writes and compares a checkout itself: to start git takes some
// milliseconds, and git is faster with each file.
const fewFiles = 500

// in returns the backend for a checkout. It reads the objects and the configuration of this repository.
func (n *native) in(co Checkout) *native {
	in := *n
	in.worktree = co.Dir
	return &in
}

// checkoutRules reads the configuration and the rules of a checkout; the error is a *needsGit on file systems whose names or links git
// treats in ways of its own.
func (n *native) checkoutRules(ctx context.Context) (*gitConfig, *rules, error) {
	cfg, err := loadConfig(n.layout, n.git)
	if err != nil {
		return nil, nil, err
	}
	if cfg.flag(ctx, "core.ignorecase", false) || cfg.flag(ctx, "core.precomposeunicode", false) || !cfg.flag(ctx, "core.symlinks", true) {
		return nil, nil, &needsGit{"the file system has names or links of its own kind"}
	}
	return cfg, newRules(ctx, n.layout, cfg), nil
}

// checkOut is [Repo.checkOut] for few files without a conversion.
func (n *native) checkOut(ctx context.Context, s *objectStore, co Checkout, at, commit string) error {
	_, rules, err := n.in(co).checkoutRules(ctx)
	if err != nil {
		return err
	}
	tree, err := s.treeOf(commit)
	if err != nil {
		return err
	}
	w := &checkoutWriter{store: s, rules: rules}
	folders, err := w.list("", tree)
	if err != nil {
		return err
	}
	root, err := regular.Root(co.Dir)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := w.write(ctx, root, nil); err != nil {
		return err
	}
	data := (&index{version: 2, entries: w.entries, folders: folders}).encode()
	return errors.Join(writeFile(at, data), writeFile(co.Index, data))
}

// checkoutWriter writes the files of a tree.
type checkoutWriter struct {
	store   *objectStore
	rules   *rules
	entries []indexEntry // of the files, sorted
}

// list adds the files of a folder to the entries, and returns the folder's part of the index.
func (w *checkoutWriter) list(dir string, hash plumbing.Hash) (*cacheTree, error) {
	entries, err := w.store.tree(hash)
	if err != nil {
		return nil, err
	}
	before := len(w.entries)
	folder := &cacheTree{name: path.Base(dir), hash: hash}
	if dir == "" {
		folder.name = ""
	}
	if err := w.readAttributes(dir, entries); err != nil {
		return nil, err
	}
	for _, e := range entries {
		at := path.Join(dir, e.name)
		switch {
		case e.mode == modeTree:
			sub, err := w.list(at, e.hash)
			if err != nil {
				return nil, err
			}
			folder.subs = append(folder.subs, sub)
		case len(w.entries) == fewFiles:
			return nil, &needsGit{"it has many files"}
		case checkTreePath(at) != nil || !plainCheckout(e.blob) && e.mode != modeLink || !w.rules.conversion(at).plain():
			return nil, &needsGit{at + " is not checked out as it is stored"}
		default:
			w.entries = append(w.entries, newEntry(at, e.blob, fileStat{}, indexEntry{}))
		}
	}
	folder.files = len(w.entries) - before
	return folder, nil
}

// readAttributes has the rules know the attributes that a folder has in the tree, as git does while it checks the tree out.
func (w *checkoutWriter) readAttributes(dir string, entries []treeEntry) error {
	i := slices.IndexFunc(entries, func(e treeEntry) bool { return e.name == ".gitattributes" })
	switch {
	case i < 0:
		w.rules.attrs[dir] = nil
		return nil
	case !plainCheckout(entries[i].blob):
		return &needsGit{path.Join(dir, entries[i].name) + " is no file"}
	}
	data, err := w.store.read(plumbing.BlobObject, entries[i].hash)
	if err == nil && len(data) >= attrLimit {
		data = nil
	}
	w.rules.attrs[dir] = parseAttributes(string(data), dir == "")
	return err
}

// write writes the files of the entries below a folder, and notes their stat data. keeps tells which ones are there already; nil: the folder
// is empty.
func (w *checkoutWriter) write(ctx context.Context, root *os.Root, keeps func(indexEntry) (fs.FileInfo, bool)) error {
	made := ""
	for _, e := range w.entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		if keeps != nil {
			if fi, ok := keeps(e); ok {
				statOf(fi).put(e.fixed)
				continue
			}
			if err := clearWay(root, e.path); err != nil {
				return err
			}
			made = ""
		}
		data, err := w.store.read(plumbing.BlobObject, e.blob().hash)
		if err != nil {
			return err
		}
		name := filepath.FromSlash(e.path)
		if dir := filepath.Dir(name); dir != made {
			if err := root.MkdirAll(dir, 0o777); err != nil {
				return err
			}
			made = dir
		}
		fi, err := newFile(root, name, e.blob().mode, data)
		if err != nil {
			return err
		}
		statOf(fi).put(e.fixed)
	}
	return nil
}

// newFile makes a file, or a link, that does not exist.
func newFile(root *os.Root, name string, mode uint32, data []byte) (fs.FileInfo, error) {
	if mode == modeLink {
		if err := root.Symlink(string(data), name); err != nil {
			return nil, err
		}
		return root.Lstat(name)
	}
	perm := fs.FileMode(0o666)
	if mode == modeExec {
		perm = 0o777
	}
	f, err := root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(data)
	fi, err2 := f.Stat()
	return fi, errors.Join(err, err2, f.Close())
}

// uncaptured is [Repo.Uncaptured] for few files.
func (n *native) uncaptured(ctx context.Context, s *objectStore, co Checkout) (found []string, err error) {
	err = n.scanCheckout(ctx, s, co, func(scan *dirtyScan) error {
		err := errors.Join(scan.modified(), scan.untracked(scan.disk, ""))
		found = append([]string{}, scan.found...)
		return err
	})
	return found, err
}

// scanCheckout has a checkout of few files compared with its index. Where that cannot read one, git decides.
func (n *native) scanCheckout(ctx context.Context, s *objectStore, co Checkout, compare func(*dirtyScan) error) error {
	cfg, rules, err := n.in(co).checkoutRules(ctx)
	if err != nil {
		return err
	}
	scan, err := scanOf(co)
	if err != nil {
		return err
	}
	if scan.disk, err = regular.Root(co.Dir); err != nil {
		return err
	}
	defer scan.disk.Close()
	scan.ctx, scan.store, scan.rules, scan.fileMode = ctx, s, rules, cfg.flag(ctx, "core.filemode", true)
	err = compare(scan)
	if pass := (*needsGit)(nil); err != nil && ctx.Err() == nil && !errors.As(err, &pass) {
		err = &needsGit{err.Error()}
	}
	return err
}

// scanOf begins to compare a checkout with its index.
func scanOf(co Checkout) (*dirtyScan, error) {
	data, _, written, err := readIndex(co.Index)
	if err != nil {
		return nil, err
	}
	ix, err := parseIndex(data)
	if err == nil && (data == nil || len(ix.entries) > fewFiles) {
		err = &needsGit{"the checkout has many files"}
	}
	return &dirtyScan{index: ix, written: written}, err
}

// modified finds the files of the index that differ on disk.
func (s *dirtyScan) modified() error {
	for _, e := range s.index.entries {
		if e.stage() != 0 || e.extended() != 0 || !plainCheckout(e.blob()) && e.blob().mode != modeLink {
			return &needsGit{e.path + " is no plain file"}
		}
		same, err := s.sameOnDisk(e)
		if err != nil {
			return err
		}
		if !same {
			s.found = append(s.found, e.path)
		}
	}
	return nil
}

// sameOnDisk reports whether a file on disk equals its entry of the index.
func (s *dirtyScan) sameOnDisk(e indexEntry) (bool, error) {
	fi, err := lstatBelow(s.disk, e.path)
	link := e.blob().mode == modeLink
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, errNotFolder), err == nil && (fi.Mode().Type() != 0 && !link || fi.Mode().Type() != fs.ModeSymlink && link):
		return false, nil
	case err != nil:
		return false, err
	case link:
		to, err := s.disk.Readlink(filepath.FromSlash(e.path))
		return hashObject(plumbing.BlobObject, []byte(to)) == e.blob().hash, err
	case s.fileMode && (fi.Mode()&0o100 != 0) != (e.blob().mode == modeExec):
		return false, nil
	}
	hash, known := s.indexed(e.path, statOf(fi))
	if !known {
		data, err := regular.Read(s.disk, filepath.FromSlash(e.path))
		if err != nil {
			return false, err
		}
		if hash, err = s.stored(e.path, data); err != nil {
			return false, &needsGit{err.Error()}
		}
	}
	return hash == e.blob().hash, nil
}

// untracked finds the files of a folder that are neither in the index nor ignored.
func (s *dirtyScan) untracked(here *os.Root, dir string) error {
	if err := s.ctx.Err(); err != nil {
		return err
	}
	names, err := regular.List(here, ".")
	if err != nil {
		return err
	}
	for _, d := range names {
		at := path.Join(dir, d.Name())
		entry, _ := s.index.find(at)
		switch {
		case treepath.OfName(d.Name()) == treepath.Git:
			if dir != "" || d.Name() != ".git" {
				return &needsGit{dir + " may be a repository of its own"}
			}
		case d.IsDir():
			if err := s.untrackedFolder(here, d.Name(), at); err != nil {
				return err
			}
		case d.Type()&^fs.ModeSymlink == 0 && entry.fixed == nil && !s.rules.ignored(at):
			s.found = append(s.found, at)
		}
	}
	return nil
}

func (s *dirtyScan) untrackedFolder(parent *os.Root, name, at string) error {
	if s.rules.ignoredFolder(at) {
		return nil
	}
	here, err := parent.OpenRoot(name)
	if err != nil {
		return err
	}
	defer here.Close()
	return s.untracked(here, at)
}

// capture is [Repo.Capture] for a checkout whose index is still that of the base, so that only the files that [Repo.Uncaptured]
// listed can differ. The index stays so: files committed here are listed again the next time, and compared with the base again.
func (n *native) capture(ctx context.Context, s *objectStore, c Capture) (Captured, error) {
	base, err := s.treeOf(c.Base)
	if err != nil {
		return Captured{}, err
	}
	data, _, _, err := readIndex(c.Index)
	if err != nil {
		return Captured{}, err
	}
	ix, err := parseIndex(data)
	if err != nil {
		return Captured{}, err
	}
	if c.Changed == nil || ix.folders == nil || ix.folders.files < 0 || ix.folders.hash != base {
		return Captured{}, &needsGit{"the index is not that of the base"}
	}
	names := slices.DeleteFunc(slices.Compact(slices.Sorted(slices.Values(c.Changed))), func(name string) bool { return slices.Contains(c.Except, name) })
	if len(names) == 0 {
		return Captured{}, nil
	}
	in := n.in(c.Checkout)
	cfg, _, err := in.checkoutRules(ctx)
	if err == nil {
		err = in.plainFiles(s, base, names)
	}
	if err != nil {
		return Captured{}, err
	}
	t := &commitCall{native: in, store: s, cfg: cfg, index: ix, c: Commit{Paths: names}}
	edits, _, err := t.edits(ctx, base)
	if err != nil || len(edits) == 0 {
		return Captured{}, err
	}
	if nested(edits) {
		return Captured{}, &needsGit{"a folder took the place of a file"}
	}
	tree, objects, err := s.graft(base, edits)
	if err != nil {
		return Captured{}, err
	}
	for _, e := range edits {
		if e.now.mode != 0 {
			objects = append(objects, object{plumbing.BlobObject, e.now.hash, t.read[e.path].data})
		}
	}
	hash, err := n.writeCommit(ctx, s, tree, objects, c.Base, Commit{Message: c.Message, Author: c.Author, When: c.When, Sign: "never"})
	if err != nil {
		return Captured{}, err
	}
	return Captured{hash, pathsOf(edits)}, nil
}

// plainFiles returns a *needsGit unless all of the paths are few regular files, or absent, both in a tree and on disk.
func (n *native) plainFiles(s *objectStore, tree plumbing.Hash, paths []string) error {
	if len(paths) > fewFiles {
		return &needsGit{"many files changed"}
	}
	root, err := regular.Root(n.worktree)
	if err != nil {
		return err
	}
	defer root.Close()
	for _, p := range paths {
		was, err := s.file(tree, p)
		if err != nil {
			return err
		}
		fi, err := lstatBelow(root, p)
		gone := errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotFolder)
		if strings.HasSuffix(p, "/") || checkTreePath(p) != nil || !plainCheckout(was) || !gone && (err != nil || !fi.Mode().IsRegular()) {
			return &needsGit{p + " is no plain file"}
		}
	}
	return nil
}
