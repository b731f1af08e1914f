package tree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/state/regular"
)

// Checkout is a tree in a separate folder: the settings and the state of one commit, and the specs of another.
type Checkout struct {
	Store *state.Store
	files fileWriter
}

// Close closes the store. The folder remains.
func (m *Checkout) Close() {
	_ = m.Store.Close() // it has no cache
	_ = m.files.root.Close()
}

// Put adds a file. A path that leads out of the folder is refused.
func (m *Checkout) Put(f gitrepo.Stored) error { return m.files.put(f) }

// Checkout checks out a tree to dir from two commits of a repository: the settings and the state of base, and the specs
// of head. The settings name the folders.
func (c Config) Checkout(ctx context.Context, repo *gitrepo.Repo, base, head, dir string) (m *Checkout, err error) {
	root, err := regular.Root(dir)
	if err != nil {
		return nil, err
	}
	m = &Checkout{files: fileWriter{root: root, made: map[string]bool{".": true}}}
	defer func() {
		if err != nil && m.Store != nil {
			_ = m.Store.Close() // as above
		}
		if err != nil {
			_ = root.Close()
		}
	}()
	if err := repo.Files(ctx, base, []string{schemas.SettingsPath}, m.Put); err != nil {
		return nil, err
	}
	o := c.StoreOptions()
	o.NoCache, o.Bare = true, true
	if m.Store, err = state.Open(dir, o); err != nil {
		return nil, err
	}
	folders := m.Store.Settings().Folders
	if err := repo.Files(ctx, base, []string{folders.State}, m.Put); err != nil {
		return nil, err
	}
	return m, repo.Files(ctx, head, []string{folders.Specs}, m.Put)
}

// fileWriter writes files into a folder.
type fileWriter struct {
	root *os.Root
	made map[string]bool // folders
}

// put writes a file. A name that leads out of the folder is an error of root; git's copy of the tree's local folder is
// omitted.
func (l *fileWriter) put(f gitrepo.Stored) error {
	name := filepath.FromSlash(f.Path)
	if dir := path.Dir(f.Path); !l.made[dir] {
		l.made[dir] = true
		if err := l.root.MkdirAll(filepath.FromSlash(dir), 0o700); err != nil {
			return regular.Cause(err)
		}
	}
	if f.Link {
		return regular.Cause(l.root.Symlink(string(f.Data), name))
	}
	return regular.Cause(l.root.WriteFile(name, f.Data, 0o600))
}

// LoadAt checks out a commit of the tree in dir, a separate folder, and loads it like any tree.
func (c Config) LoadAt(ctx context.Context, repo *gitrepo.Repo, commit, dir string) (*state.Tree, error) {
	m, err := c.Checkout(ctx, repo, commit, commit, dir)
	if err != nil {
		return nil, err
	}
	defer m.Close()
	t, err := m.Store.Load(ctx)
	if err != nil {
		return nil, err
	}
	for _, e := range t.Entries(schemas.DAGKind.Name) {
		e.Missing = nil // outputs are in the work tree; commits do not record them
	}
	return t, nil
}

// Revision opens the repository of the tree, and resolves rev to a commit. The error is a *NoHistoryError without a
// repository.
func (c Config) Revision(ctx context.Context, rev string) (*gitrepo.Repo, string, error) {
	repo, err := gitrepo.Open(c.Dir)
	if errors.Is(err, gitrepo.ErrNotARepo) {
		return nil, "", &NoHistoryError{err}
	}
	if err != nil {
		return nil, "", fmt.Errorf("open the repository of the tree: %w", err)
	}
	commit, err := repo.Resolve(ctx, rev)
	return repo, commit, err
}

// NoHistoryError says that a commit was requested without a repository.
type NoHistoryError struct{ Err error }

func (e *NoHistoryError) Error() string {
	return fmt.Sprintf("what was before is known in a git repository only: %v", e.Err)
}

// BadRequest marks an error of the request.
func (e *NoHistoryError) BadRequest() {}
