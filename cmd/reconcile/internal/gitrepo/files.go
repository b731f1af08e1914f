package gitrepo

import (
	"context"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// Stored is a file in a commit.
type Stored struct {
	Path string // slash path below the directory given to Open
	Link bool   // a symbolic link; Data is its target
	Data []byte
}

// modeLink is the mode of a symbolic link.
const modeLink = 0o120000

// Files calls visit for each file of a commit that is one of the paths or below one, in git's order; submodules are
// left out. It reads objects and checks nothing out.
func (r *Repo) Files(ctx context.Context, commit string, paths []string, visit func(Stored) error) error {
	below, err := r.below(paths)
	if err != nil {
		return err
	}
	return r.files(ctx, commit, below, func(string) bool { return true }, visit)
}

// FilesLike visits the stored files of a commit below the directory given to Open whose relative slash paths are
// wanted. It reads no content of others.
func (r *Repo) FilesLike(ctx context.Context, commit string, wanted func(path string) bool, visit func(Stored) error) error {
	all := []string{strings.TrimSuffix(r.prefix, "/")}
	return r.files(ctx, commit, all, func(p string) bool { return wanted(strings.TrimPrefix(p, r.prefix)) }, visit)
}

// files takes paths relative to the top of the repository ("" is the top itself), and passes such paths to wanted.
func (r *Repo) files(ctx context.Context, commit string, paths []string, wanted func(string) bool, visit func(Stored) error) error {
	own := func(f Stored) error {
		f.Path = strings.TrimPrefix(f.Path, r.prefix)
		return visit(f)
	}
	if r.command != nil { // faster for many files, because it caches delta bases
		return r.command.(*command).files(ctx, commit, paths, wanted, own)
	}
	s := newObjectStore(r.layout)
	defer s.close()
	root, err := s.treeOf(commit)
	if err != nil {
		return err
	}
	for _, p := range paths {
		at := blob{mode: modeTree, hash: root}
		if p != "" {
			at, err = s.file(root, p)
		}
		if err == nil {
			err = s.each(ctx, p, at, wanted, own)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// each visits the wanted files of a tree entry.
func (s *objectStore) each(ctx context.Context, path string, at blob, wanted func(string) bool, visit func(Stored) error) error {
	switch at.mode {
	case modeTree:
		entries, err := s.tree(at.hash)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := s.each(ctx, strings.TrimPrefix(path+"/"+e.name, "/"), e.blob, wanted, visit); err != nil {
				return err
			}
		}
		return ctx.Err()
	case modeFile, modeExec, modeLink:
		if !wanted(path) {
			return nil
		}
		data, err := s.read(plumbing.BlobObject, at.hash)
		if err != nil {
			return err
		}
		return visit(Stored{Path: path, Link: at.mode == modeLink, Data: data})
	}
	return nil
}
