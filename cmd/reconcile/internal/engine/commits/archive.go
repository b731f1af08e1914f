package commits

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/regular"
)

// Movable returns the paths of spec files that may be moved to the archive: all outside of a repository, otherwise
// those that are not dirty. c may be nil: then the repository of dir is used.
func (c *Committer) Movable(ctx context.Context, dir string, paths []string) ([]string, error) {
	repo, err := c.repository(dir)
	switch {
	case errors.Is(err, gitrepo.ErrNotARepo):
		return paths, nil
	case err != nil:
		return nil, nil // nothing moves if the repository cannot be opened
	}
	dirty, err := repo.Dirty(ctx, "", paths)
	return slices.DeleteFunc(slices.Clone(paths), func(p string) bool {
		_, is := slices.BinarySearch(dirty, p)
		return is
	}), err
}

func (c *Committer) repository(dir string) (*gitrepo.Repo, error) {
	if c != nil {
		return c.Git, nil
	}
	return gitrepo.Open(dir)
}

// Archived returns those of the paths of changed files that are gone from the specs folder since their specs were moved to the archive,
// after the last commit of the branch.
func Archived(ctx context.Context, git *gitrepo.Repo, s *state.Store, t *state.Tree, changed []string) ([]string, error) {
	folders := t.Settings().Folders
	gone := slices.DeleteFunc(slices.Clone(changed), func(p string) bool {
		_, err := s.Root().Lstat(p)
		return !strings.HasPrefix(p, folders.Specs+"/") || !errors.Is(err, fs.ErrNotExist)
	})
	if len(gone) == 0 {
		return nil, nil
	}
	byName := map[string][]string{} // paths in the archive
	for _, k := range settle.TableOf(t) {
		if k.Retired == nil {
			continue
		}
		for _, e := range t.Entries(k.Name) {
			if e.Object != nil && strings.HasPrefix(e.Object.Path, state.ArchiveDir(folders.State)+"/") {
				byName[path.Base(e.Object.Path)] = append(byName[path.Base(e.Object.Path)], e.Object.Path)
			}
		}
	}
	gone = slices.DeleteFunc(gone, func(p string) bool { return byName[path.Base(p)] == nil })
	if len(gone) == 0 {
		return nil, nil
	}
	head, err := git.Head(ctx)
	if err != nil || head.Hash == "" {
		return nil, err
	}
	var moved []string
	err = git.Files(ctx, head.Hash, gone, func(f gitrepo.Stored) error {
		if slices.ContainsFunc(byName[path.Base(f.Path)], func(p string) bool {
			data, err := regular.Read(s.Root(), p)
			return err == nil && bytes.Equal(data, f.Data)
		}) {
			moved = append(moved, f.Path)
		}
		return nil
	})
	return moved, err
}
