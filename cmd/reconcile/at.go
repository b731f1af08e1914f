package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/regular"
)

// atFlag binds --at to a command that looks at the tree.
func (a *app) atFlag(cmd *cobra.Command, at *string) {
	cmd.Flags().StringVar(at, "at", "", "look at the tree as it is in `COMMIT`: a hash, a branch, a tag, HEAD~3")
}

// loadAt is load for the tree as a commit has it; "" is the tree as it is. done gives up what it holds.
func (a *app) loadAt(ctx context.Context, rev string) (t *state.Tree, done func(), err error) {
	if rev == "" {
		s, t, err := a.load(ctx)
		if err != nil {
			return nil, nil, err
		}
		return t, func() { _ = s.Close() }, nil // it saves a cache, no more
	}
	repo, commit, err := a.revision(ctx, rev)
	if err != nil {
		return nil, nil, err
	}
	dir, err := os.MkdirTemp("", "reconcile-at-")
	if err != nil {
		return nil, nil, fmt.Errorf("make a folder for the tree of %s: %w", rev, err)
	}
	remove := func() { _ = os.RemoveAll(dir) } // what is left of it, the system clears away
	t, err = a.readAt(ctx, repo, commit, dir)
	if err != nil {
		remove()
		return nil, nil, fmt.Errorf("read the tree of %s: %w", rev, err)
	}
	return t, remove, nil
}

// revision finds the repository of the tree, and the commit that rev names.
func (a *app) revision(ctx context.Context, rev string) (*gitrepo.Repo, string, error) {
	repo, err := gitrepo.Open(a.global.dir)
	if errors.Is(err, gitrepo.ErrNotARepo) {
		return nil, "", badUsage("what was before is known in a git repository only: %v", err)
	}
	if err != nil {
		return nil, "", fmt.Errorf("open the repository of the tree: %w", err)
	}
	commit, err := repo.Resolve(ctx, rev)
	return repo, commit, err
}

// readAt lays out what a commit has of the tree in dir, a folder of its own, and loads it as any tree.
func (a *app) readAt(ctx context.Context, repo *gitrepo.Repo, commit, dir string) (*state.Tree, error) {
	m, err := a.layOut(ctx, repo, commit, commit, dir)
	if err != nil {
		return nil, err
	}
	defer m.close()
	t, err := m.store.Load(ctx)
	if err != nil {
		return nil, err
	}
	for _, e := range t.Entries(schemas.DAGKind.Name) {
		e.Missing = nil // outputs are in the work tree, and no commit tells what it had
	}
	return t, nil
}

// laidOut is a tree in a folder of its own: the settings and the state of one commit, and the specs of one.
type laidOut struct {
	layer
	store *state.Store
}

func (m *laidOut) close() {
	_ = m.store.Close() // it has no cache
	_ = m.root.Close()
}

// layOut lays a tree out in dir. Which folders it has, the settings of base say.
func (a *app) layOut(ctx context.Context, repo *gitrepo.Repo, base, head, dir string) (m *laidOut, err error) {
	root, err := regular.Root(dir)
	if err != nil {
		return nil, err
	}
	m = &laidOut{layer: layer{root: root, made: map[string]bool{".": true}}}
	defer func() {
		if err != nil && m.store != nil {
			_ = m.store.Close() // as above
		}
		if err != nil {
			_ = root.Close()
		}
	}()
	if err := repo.Files(ctx, base, []string{schemas.SettingsPath}, m.put); err != nil {
		return nil, err
	}
	o := a.storeOptions()
	o.NoCache, o.Bare = true, true
	if m.store, err = state.Open(dir, o); err != nil {
		return nil, err
	}
	folders := m.store.Settings().Folders
	if err := repo.Files(ctx, base, []string{folders.State}, m.put); err != nil {
		return nil, err
	}
	return m, repo.Files(ctx, head, []string{folders.Specs}, m.put)
}

// layer lays files out in a folder.
type layer struct {
	root *os.Root
	made map[string]bool // folders
}

// put writes a file. A name that leads out of the folder is refused by it; whatever git has of the tree's own local
// folder is left out.
func (l *layer) put(f gitrepo.Stored) error {
	name := filepath.FromSlash(f.Path)
	if dir := path.Dir(f.Path); !l.made[dir] {
		l.made[dir] = true
		if err := l.root.MkdirAll(filepath.FromSlash(dir), 0o700); err != nil {
			return unwrapPath(err)
		}
	}
	if f.Link {
		return unwrapPath(l.root.Symlink(string(f.Data), name))
	}
	return unwrapPath(l.root.WriteFile(name, f.Data, 0o600))
}
