package gitrepo

import (
	"context"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
)

// Changed lists the tracked files, below the top, that differ from the commit that is checked out.
func (r *Repo) Changed(ctx context.Context) (found []string, err error) {
	err = r.either(func(n *native, s *objectStore) error {
		return n.scanWorktree(ctx, s, func(scan *dirtyScan) error {
			if err := scan.isOfHead(n.layout); err != nil {
				return err
			}
			err := scan.modified()
			found = scan.found
			return err
		})
	}, func(k *command) error {
		out, err := k.run(ctx, call{}, "diff", "--name-only", "--no-renames", "--no-ext-diff", "-z", "HEAD", "--")
		found = nulSplit(out)
		return err
	})
	return found, err
}

// Untracked lists the files of the work tree that are neither tracked nor ignored, below its top. The name of a folder that is a repository
// of its own ends with a slash.
func (r *Repo) Untracked(ctx context.Context) (found []string, err error) {
	_, found, err = r.workFiles(ctx, "--others")
	return found, err
}

// WorkFiles lists the files of the work tree that git tracks, also those that were removed, and those of [Repo.Untracked].
func (r *Repo) WorkFiles(ctx context.Context) (tracked, untracked []string, err error) {
	return r.workFiles(ctx, "--cached", "--others")
}

func (r *Repo) workFiles(ctx context.Context, kinds ...string) (tracked, untracked []string, err error) {
	err = r.either(func(n *native, s *objectStore) error {
		return n.scanWorktree(ctx, s, func(scan *dirtyScan) error {
			err := scan.untracked(scan.disk, "")
			tracked, untracked = scan.index.paths(), slices.Sorted(slices.Values(scan.found))
			return err
		})
	}, func(k *command) error {
		out, err := k.run(ctx, call{}, slices.Concat([]string{"ls-files"}, kinds, []string{"--exclude-standard", "--full-name", "-t", "-z", "--", ":/"})...)
		tracked, untracked = nil, nil
		for _, line := range nulSplit(out) {
			if tag, name, _ := strings.Cut(line, " "); tag == "?" {
				untracked = append(untracked, name)
			} else {
				tracked = append(tracked, name)
			}
		}
		return err
	})
	return tracked, untracked, err
}

// scanWorktree is scanCheckout for the work tree of the user.
func (n *native) scanWorktree(ctx context.Context, s *objectStore, compare func(*dirtyScan) error) error {
	return n.scanCheckout(ctx, s, Checkout{Dir: n.worktree, Index: filepath.Join(n.gitDir, "index")}, compare)
}

// isOfHead reports, with a *needsGit, that the index has other files than the commit that is checked out. It reads the commit: who wrote the
// index may have noted another one there.
func (s *dirtyScan) isOfHead(l layout) error {
	head, err := readHead(l)
	if err != nil {
		return err
	}
	if head.Hash == "" {
		return &needsGit{"there is no commit"}
	}
	tree, err := s.store.treeOf(head.Hash)
	if err != nil {
		return err
	}
	rest, err := s.after("", tree, s.index.entries)
	if err == nil && len(rest) > 0 {
		err = &needsGit{rest[0].path + " is staged"}
	}
	return err
}

// after returns the entries that follow those of a folder, which must be the first ones.
func (s *dirtyScan) after(dir string, tree plumbing.Hash, entries []indexEntry) ([]indexEntry, error) {
	all, err := s.store.tree(tree)
	if err != nil {
		return nil, err
	}
	for _, e := range all {
		at := path.Join(dir, e.name)
		switch {
		case e.mode == modeTree:
			if entries, err = s.after(at, e.hash, entries); err != nil {
				return nil, err
			}
		case len(entries) == 0 || entries[0].path != at || entries[0].blob() != e.blob:
			return nil, &needsGit{at + " is staged"}
		default:
			entries = entries[1:]
		}
	}
	return entries, nil
}

// paths are those of the entries.
func (x *index) paths() []string {
	out := make([]string, len(x.entries))
	for i, e := range x.entries {
		out[i] = e.path
	}
	return out
}
