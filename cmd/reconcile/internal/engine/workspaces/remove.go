package workspaces

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/schemas"
)

// parkedRefs is the folder of the references to uncommitted changes of a workspace. The name of the workspace follows.
const parkedRefs = "refs/reconcile/parked/"

// setAside renames a workspace whose base commit the repository does not have: it belongs to another one
// that was in this folder before, and nothing can be parked. The folder is kept under another name. The lock is held.
func (m *Manager) setAside(ctx context.Context, repo *gitrepo.Repo, o Owner) (bool, error) {
	if o.State == stateCreated || o.inUse() || !exists(m.path(o.Name)) {
		return false, nil
	}
	if has, err := repo.HasCommit(ctx, o.Base); has || err != nil {
		return false, err
	}
	aside := fmt.Sprintf("%s.former-%d", m.path(o.Name), m.o.Now().UnixNano())
	if err := os.Rename(m.path(o.Name), aside); err != nil {
		return false, err
	}
	m.o.Warn(fmt.Sprintf("a workspace was made from a commit of another repository that was here before; it is kept as %s, and you can delete it", aside))
	return true, errors.Join(removeIfThere(m.path(o.Name+".index")), removeIfThere(m.path(o.Name+recordSuffix)))
}

// discard removes a workspace that could not be made.
func (m *Manager) discard(ctx context.Context, repo *gitrepo.Repo, o Owner) error {
	unlock, err := m.lock()
	if err != nil {
		return err
	}
	defer unlock()
	return m.removeLocked(context.WithoutCancel(ctx), repo, o)
}

// remove parks uncommitted changes, and deletes the workspace. The lock is held.
func (m *Manager) removeLocked(ctx context.Context, repo *gitrepo.Repo, o Owner) error {
	if o.State != stateCreated && o.State != stateSpare && exists(m.path(o.Name)) {
		var err error
		if o, err = m.park(ctx, repo, o); err != nil {
			return fmt.Errorf("the workspace %s is kept: what is not committed in it cannot be parked: %w", o.Name, err)
		}
	}
	if o.State == stateWorking || o.State == stateDone { // somebody removed its folder
		var err error
		if o, err = m.changeLocked(o.Name, parked("")); err != nil {
			return err
		}
	}
	if !o.removable() {
		return o.refuse("it cannot be deleted")
	}
	if err := removeAll(m.path(o.Name)); err != nil {
		return err
	}
	if o.Kind == schemas.WorkspaceWorktree {
		if err := repo.PruneWorktrees(ctx); err != nil {
			return err
		}
	}
	return errors.Join(removeIfThere(m.path(o.Name+".index")), removeIfThere(m.path(o.Name+recordSuffix)))
}

// park commits uncommitted changes to a reference of the repository, and records that.
func (m *Manager) park(ctx context.Context, repo *gitrepo.Repo, o Owner) (Owner, error) {
	changed, err := m.checkSecrets(ctx, repo, o, nil, nil)
	if err != nil {
		return o, fmt.Errorf("%w; reconcile workspace open %s prints where it is, also to delete the folder", err, o.Name)
	}
	own, err := testFiles(ctx, repo, o.tests(), o.Base)
	if err != nil {
		return o, err
	}
	got, err := repo.Capture(ctx, gitrepo.Capture{Checkout: m.checkout(o.Name), Base: o.Base, Except: own, Changed: changed, Author: author(o), When: m.o.Now(),
		Message: fmt.Sprintf("Park %s of %s\n\nReconcile-Run: %s\n", o.Node, o.Owner, o.Run)})
	if err != nil {
		return o, err
	}
	if o.Commit != "" {
		if has, err := repo.HasCommit(ctx, o.Commit); err != nil {
			return o, err
		} else if !has { // the tree was cloned anew
			o.Commit = ""
		}
	}
	if got.Commit != "" && o.Commit != "" {
		same, err := repo.SameTree(ctx, got.Commit, o.Commit)
		if err != nil {
			return o, err
		}
		if same {
			got.Commit = ""
		}
	}
	if got.Commit == "" && o.Commit != "" && o.State == stateDone { // its branch may be that of a later attempt by now
		at, err := repo.Ref("refs/heads/" + o.Branch)
		if err != nil {
			return o, err
		}
		if at != o.Commit {
			got.Commit = o.Commit
		}
	}
	if got.Commit != "" {
		if err := repo.SetRef(ctx, parkedRefs+o.Name, got.Commit, m.o.Now()); err != nil {
			return o, err
		}
	}
	return m.changeLocked(o.Name, parked(got.Commit))
}

// removeAll removes a folder, also one with folders that cannot be written to, as module caches have.
func removeAll(dir string) error {
	err := os.RemoveAll(dir)
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			err = os.Chmod(p, 0o700)
		}
		return err
	})
	return os.RemoveAll(dir)
}

func removeIfThere(path string) error {
	if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Workspace is a workspace as it is listed.
type Workspace struct {
	Owner
	Dir   string
	Bytes int64
	InUse bool // a run of a living process works in it
	// Gone says that its folder does not exist any more.
	Gone bool
}

// List returns all workspaces of the tree, by name.
func (m *Manager) List() ([]Workspace, error) {
	all, err := m.owners()
	if err != nil {
		return nil, err
	}
	out := make([]Workspace, len(all))
	for i, o := range all {
		out[i] = m.describe(o)
	}
	return out, nil
}

func (m *Manager) describe(o Owner) Workspace {
	dir := m.path(o.Name)
	return Workspace{Owner: o, Dir: dir, Bytes: sizeOf(dir), InUse: o.inUse(), Gone: !exists(dir)}
}

// inUse reports whether the process that started the latest run may still live, or is on another machine.
func (o *Owner) inUse() bool {
	return o.Process.PID != 0 && (o.State == stateWorking || o.State == stateCreated) && !o.Process.Gone()
}

// Find returns the workspace with that name, or the only one whose name begins with it or that belongs to such a node.
func (m *Manager) Find(name string) (Workspace, error) {
	all, err := m.owners()
	if err != nil {
		return Workspace{}, err
	}
	var found []Owner
	for _, o := range all {
		switch {
		case o.Name == name:
			return m.describe(o), nil
		case strings.HasPrefix(o.Name, name), o.Owner+":"+o.Node == name, o.Node == name:
			found = append(found, o)
		}
	}
	switch len(found) {
	case 0:
		return Workspace{}, fmt.Errorf("no workspace is called %q, or begins with it; reconcile workspace list shows them", name)
	case 1:
		return m.describe(found[0]), nil
	}
	names := make([]string, len(found))
	for i, o := range found {
		names[i] = o.Name
	}
	return Workspace{}, fmt.Errorf("%q is the beginning of more than one workspace: %s", name, some(names))
}

// Diff returns what differs in a workspace from the commit that it was made from, in the form of git diff.
func (m *Manager) Diff(ctx context.Context, name string) ([]byte, error) {
	o, err := m.read(name)
	if err != nil {
		return nil, err
	}
	repo, err := m.repository()
	if err != nil {
		return nil, err
	}
	_, diff, err := m.changes(ctx, repo, o, nil)
	return diff, err
}

// changes returns what differs in a workspace from the commit that it was made from, except some files.
func (m *Manager) changes(ctx context.Context, repo *gitrepo.Repo, o Owner, except []string) (files []string, diff []byte, err error) {
	co := m.checkout(o.Name)
	scratch, err := os.MkdirTemp("", "reconcile-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(scratch)
	index := filepath.Join(scratch, "index") // a run may be using the other one
	if err := copyFile(co.Index, filepath.Dir(index), filepath.Base(index)); err != nil {
		return nil, nil, err
	}
	co.Index = index
	own, err := testFiles(ctx, repo, o.tests(), o.Base)
	if err != nil {
		return nil, nil, err
	}
	except = append(own, except...)
	return repo.Compare(ctx, scratch, gitrepo.Capture{Checkout: co, Base: o.Base, Except: except, Author: author(o), When: m.o.Now(), Message: "Compare\n"})
}

// DiffOf returns what differs in the workspace of the attempts whose keys begin so, in the form of git diff; nil without one.
func (m *Manager) DiffOf(ctx context.Context, attempts string) ([]byte, error) {
	all, err := m.owners()
	if err != nil {
		return nil, err
	}
	for _, o := range all {
		if o.Attempts == attempts && (o.State == stateWorking || o.State == stateDone) && exists(m.path(o.Name)) {
			return m.Diff(ctx, o.Name)
		}
	}
	return nil, nil
}

// Drop parks uncommitted changes of a workspace, and deletes it. ref is the reference to them; "" without any.
func (m *Manager) Drop(ctx context.Context, name string) (ref string, err error) {
	unlock, err := m.lock()
	if err != nil {
		return "", err
	}
	defer unlock()
	o, err := m.read(name)
	if err != nil {
		return "", err
	}
	if o.inUse() {
		return "", fmt.Errorf("the run %s works in %s; cancel it first: reconcile cancel %s", o.Run, name, o.Owner)
	}
	repo, err := m.repository()
	if err != nil {
		return "", err
	}
	if err := m.removeLocked(ctx, repo, o); err != nil {
		return "", err
	}
	if at, err := repo.Ref(parkedRefs + name); err != nil || at == "" {
		return "", err
	}
	return parkedRefs + name, nil
}

// Sweep deletes workspaces whose work has landed or is parked: those that are older than workspaces.keepFor, and the
// oldest while all take more than workspaces.keepBytes. It first parks those that no run has used for that long: a commit that waits
// to land, or that did not, needs no workspace.
func (m *Manager) Sweep(ctx context.Context) error {
	if m.unusable != nil || !exists(m.dir) {
		return nil
	}
	unlock, err := m.lock()
	if err != nil {
		return err
	}
	defer unlock()
	all, err := m.owners()
	if err != nil || len(all) == 0 {
		return err
	}
	repo, err := m.repository()
	if err != nil {
		return err
	}
	var rest []Owner
	s := &m.o.Settings.Workspaces
	for _, o := range all {
		old := m.o.Now().Sub(o.ChangedAt) > s.KeepFor.Std()
		switch {
		case o.inUse():
		case o.State == stateCreated, old:
			aside, err := m.setAside(ctx, repo, o)
			if err == nil && !aside {
				err = m.removeLocked(ctx, repo, o)
			}
			if err != nil {
				m.o.Warn(err.Error())
			}
			continue
		}
		rest = append(rest, o)
	}
	return m.shrink(ctx, repo, rest)
}

// shrink deletes the oldest removable workspaces while all take too much space.
func (m *Manager) shrink(ctx context.Context, repo *gitrepo.Repo, all []Owner) error {
	total, sizes := int64(0), map[string]int64{}
	for _, o := range all {
		sizes[o.Name] = sizeOf(m.path(o.Name))
		total += sizes[o.Name]
	}
	slices.SortFunc(all, func(a, b Owner) int { return a.ChangedAt.Compare(b.ChangedAt) })
	for _, o := range all {
		if total <= int64(*m.o.Settings.Workspaces.KeepBytes) {
			return nil
		}
		if o.State == stateLanded || o.State == stateParked || o.State == stateSpare {
			if err := m.removeLocked(ctx, repo, o); err != nil {
				m.o.Warn(err.Error())
				continue
			}
			total -= sizes[o.Name]
		}
	}
	return nil
}

// sizeOf is the size of the files below dir.
func sizeOf(dir string) int64 {
	total := int64(0)
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil // files vanish while an agent works
		}
		if fi, err := d.Info(); err == nil && fi.Mode().IsRegular() {
			total += fi.Size()
		}
		return nil
	})
	return total
}
