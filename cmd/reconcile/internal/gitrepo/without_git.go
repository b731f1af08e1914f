package gitrepo

import (
	"context"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"reconcile.dev/reconcile/state/regular"
)

// either answers a question about objects from the files of the repository. Where only git can, it asks git: each of its
// commands costs some milliseconds.
func (r *Repo) either(read func(*native, *objectStore) error, ask func(*command) error) error {
	if r.why == nil {
		n := r.native.(*native)
		s := newObjectStore(r.layout)
		err := read(n, s)
		s.close()
		var pass *needsGit
		if !errors.As(err, &pass) {
			return err
		}
	}
	k, err := r.gitCommand()
	if err != nil {
		return err
	}
	return ask(k)
}

// changedFiles is [Repo.ChangedFiles] for two trees.
func (s *objectStore) changedFiles(from, to plumbing.Hash) ([]string, error) {
	edits, _, err := s.difference(from, to)
	if err != nil {
		return nil, err
	}
	for _, e := range edits {
		if e.now.mode == modeModule {
			return nil, ownRepository(e.path, e.was.mode == modeModule)
		}
	}
	return slices.Compact(pathsOf(edits)), nil
}

// ownRepository is the error for a repository inside of the files, which may be a known submodule at another commit.
func ownRepository(path string, submodule bool) error {
	if submodule {
		return fmt.Errorf("%s is a submodule, and its files cannot become part of a commit here; move it to another commit yourself, "+
			"and have it at its former one again with: git submodule update %[1]s", path)
	}
	return fmt.Errorf("%s is a git repository of its own, whose files cannot become part of a commit here; remove its "+
		".git, or ignore the folder in .gitignore", path)
}

// content returns the content of a file of a commit.
func (s *objectStore) content(commit, path string) ([]byte, error) {
	root, err := s.treeOf(commit)
	if err != nil {
		return nil, err
	}
	at, err := s.file(root, path)
	if err != nil {
		return nil, err
	}
	if at.mode == 0 || at.mode == modeTree || at.mode == modeModule {
		return nil, fmt.Errorf("%s is no file of %s", path, commit)
	}
	return s.read(plumbing.BlobObject, at.hash)
}

// authorOf returns the author of a commit, as "Name <mail>".
func (s *objectStore) authorOf(commit string) (string, error) {
	data, err := s.read(plumbing.CommitObject, plumbing.NewHash(commit))
	if err != nil {
		return "", err
	}
	head, _, _ := strings.Cut(string(data), "\n\n")
	_, line, _ := strings.Cut(head, "\nauthor ")
	line, _, _ = strings.Cut(line, "\n")
	return line[:strings.LastIndexByte(line, '>')+1], nil
}

// straight is how far a history without merges is read here; git is faster with a long one.
const straight = 500

// between is [Repo.Between] for a history without merges.
func (s *objectStore) between(from, to string, limit int) ([]LogLine, error) {
	var lines []LogLine
	for hash := to; hash != from && len(lines) < limit; {
		c, err := s.commit(hash)
		if err != nil {
			return nil, err
		}
		if len(c.Parents) != 1 || len(lines) == straight {
			return nil, &needsGit{"the history is not one short line"}
		}
		subject, _, _ := strings.Cut(strings.TrimLeft(c.Message, "\n"), "\n\n")
		lines = append(lines, LogLine{hash, strings.Join(strings.Fields(subject), " "), c.Message})
		hash = c.Parents[0]
	}
	return lines, nil
}

// pick is [Repo.PickOnto] where the two sides changed different files. Where they may concern each other, also by renames of
// folders, only git can decide.
func (n *native) pick(ctx context.Context, s *objectStore, p Pick) (Picked, error) {
	commit, err := s.commit(p.Commit)
	if err != nil {
		return Picked{}, err
	}
	var trees [3]plumbing.Hash
	for i, hash := range []string{p.Base, p.Commit, p.Onto} {
		if trees[i], err = s.treeOf(hash); err != nil {
			return Picked{}, err
		}
	}
	theirs, _, err := s.difference(trees[0], trees[1])
	if err != nil {
		return Picked{}, err
	}
	ours, _, err := s.difference(trees[0], trees[2])
	if err != nil {
		return Picked{}, err
	}
	if len(ours) > 0 && !apart(ours, theirs) || nested(theirs) {
		return Picked{}, &needsGit{"both sides changed files that may concern each other"}
	}
	slices.SortFunc(theirs, func(a, b edit) int { return strings.Compare(a.path, b.path) })
	tree, objects, err := s.graft(trees[2], theirs)
	if err != nil {
		return Picked{}, err
	}
	if tree == trees[2] {
		return Picked{Commit: p.Onto}, nil
	}
	hash, err := n.writeCommit(ctx, s, tree, objects, p.Onto, Commit{Message: commit.Message, Author: p.Author, When: p.When, Sign: p.Sign})
	return Picked{Commit: hash}, err
}

// apart reports whether the changes of two sides cannot concern each other.
func apart(ours, theirs []edit) bool {
	both := slices.Concat(ours, theirs)
	slices.SortFunc(both, func(a, b edit) int { return strings.Compare(a.path, b.path) })
	twice := slices.CompactFunc(slices.Clone(both), func(a, b edit) bool { return a.path == b.path })
	added := func(e edit) bool { return e.was.mode == 0 }
	removed := func(e edit) bool { return e.now.mode == 0 }
	moved := slices.ContainsFunc(ours, added) && slices.ContainsFunc(theirs, removed) ||
		slices.ContainsFunc(ours, removed) && slices.ContainsFunc(theirs, added)
	return len(twice) == len(both) && !moved && !nested(both)
}

// nested reports whether one of the files is a folder of another.
func nested(edits []edit) bool {
	files := map[string]bool{}
	for _, e := range edits {
		files[e.path] = true
	}
	return slices.ContainsFunc(edits, func(e edit) bool {
		for dir := path.Dir(e.path); dir != "."; dir = path.Dir(dir) {
			if files[dir] {
				return true
			}
		}
		return false
	})
}

// setRef is [Repo.SetRef] for a commit.
func (n *native) setRef(ctx context.Context, ref, commit string, now time.Time) (err error) {
	cfg, err := loadConfig(n.layout, n.git)
	if err != nil {
		return err
	}
	_, committer, err := identities(ctx, cfg, "", now)
	if err != nil {
		return err
	}
	w, err := openScratchDir(ctx, n.layout, n.lockTimeout)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	to := refMove{commit: commit, line: committer.String() + "\treconcile: set",
		log: strings.HasPrefix(ref, "refs/heads/") && cfg.flag(ctx, "core.logallrefupdates", true)}
	for range 20 {
		at := target{Head: Head{Ref: ref}}
		if at.Hash, err = resolveRef(n.layout, ref); err != nil || at.Hash == commit {
			return err
		}
		if err = moveRef(ctx, n.layout, w, at, to); !errors.Is(err, errMoved) {
			return err
		}
	}
	return err
}

// uncommitted is [Repo.Uncommitted] for files below the top of the work tree.
func (n *native) uncommitted(ctx context.Context, commit string, paths []string) ([]string, error) {
	scan, err := n.newScan(ctx, "")
	if err != nil {
		return nil, err
	}
	defer scan.store.close()
	if scan.tree, err = scan.store.treeOf(commit); err != nil {
		return nil, err
	}
	if scan.disk, err = regular.Root(n.worktree); err != nil {
		return nil, err
	}
	defer scan.disk.Close()
	for _, p := range paths {
		was, err := scan.store.file(scan.tree, p)
		if err != nil {
			return nil, err
		}
		fi, err := scan.disk.Lstat(filepath.FromSlash(p))
		switch {
		case was.mode == 0 || err == nil && plainCheckout(was) && !fi.Mode().IsRegular():
			scan.found = append(scan.found, p)
		case !plainCheckout(was) || !scan.rules.conversion(p).native():
			return nil, &needsGit{p + " is no plain file"}
		default:
			if err := scan.compare(p, was); err != nil {
				return nil, err
			}
		}
	}
	return scan.found, nil
}
