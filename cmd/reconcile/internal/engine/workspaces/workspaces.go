// Package workspaces makes the folders in which agents work: checkouts of one commit, outside of the repository.
//
// A workspace is made from the last commit of the branch that the work is for, as a repository that shares the objects
// of the user's one, or as a linked work tree of it. No hook runs. It has an owner record, and the record's state alone
// decides about it:
//
//	created   it is being made; no agent has seen it
//	working   runs of one node work in it, one after the other
//	done      a run succeeded, and its commit is on the branch of the node
//	landed    the commit is part of the branch that the work is for
//	parked    it will not be used any more
//	spare     checks of commits ran in it, and others may
//
// [Manager.remove] is the only function that deletes a workspace. Before it does, it commits whatever is not committed
// yet to refs/reconcile/parked/<name>, so that deleting loses nothing.
//
// # Files
//
// All are in one folder for each tree, by default below $XDG_STATE_HOME/reconcile/ws. A workspace has a name:
//
//	<name>/        the checkout
//	<name>.index   reconcile's own index of it, which programs in the workspace do not change
//	<name>.json    the owner record
//	setup/         what the setup command made, by the digest of the lock files
//	lock           held while records are compared and written
package workspaces

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/cmd/reconcile/internal/runner"
	"reconcile.dev/reconcile/cmd/reconcile/internal/runner/sandbox"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/proc"
	"reconcile.dev/reconcile/state/worktree"
)

// Options configure a Manager. Warn, Sandbox and Secrets may be left out, and Self where nothing is verified.
type Options struct {
	Dir      string // of the tree
	Settings *schemas.SettingsSpec
	Now      func() time.Time
	Getenv   func(string) string
	Warn     func(text string) // may be nil
	// Self is the program that verifies commits: this one. Sandbox confines the tools that it runs; may be nil.
	Self    string
	Sandbox *sandbox.Host
	// Secrets are in no commit, in addition to what looks like a secret. May be nil.
	Secrets *runner.Secrets
}

// Manager manages the workspaces of one tree. It is safe for concurrent use, and so are managers of several processes.
type Manager struct {
	delivered sync.Map                     // outputs that were copied into the work tree, below its top
	records   sync.Map                     // records that were read: knownOwner by name
	opened    atomic.Pointer[gitrepo.Repo] // the repository of the tree, as it was last opened
	mu        sync.Mutex                   // guards the next two; locked before the records
	checks    map[string]Owner             // the checkouts for checks in use, by their users
	spare     []Owner                      // those that this process has, and nobody uses
	o         Options
	tree      string // real path of the tree
	dir       string // of the workspaces
	// unusable says why no workspace can be made.
	unusable error
}

// New returns a Manager. It writes nothing.
func New(o Options) (*Manager, error) {
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	real, err := filepath.Abs(o.Dir)
	if err == nil {
		real, err = filepath.EvalSymlinks(real)
	}
	if err != nil {
		return nil, err
	}
	base, err := baseDir(o)
	if err != nil {
		return &Manager{o: o, tree: real, unusable: err}, nil
	}
	if inside(real, base) {
		err = fmt.Errorf("folders.workspaces: %s is inside the tree, where an agent could not be kept from the tree's own "+
			"files; name a folder outside of it", base)
	}
	sum := sha256.Sum256([]byte(real))
	return &Manager{checks: map[string]Owner{}, o: o, tree: real, unusable: err, dir: filepath.Join(base, filepath.Base(real)+"-"+hex.EncodeToString(sum[:4]))}, nil
}

// baseDir is the folder of the workspaces of all trees.
func baseDir(o Options) (string, error) {
	home := o.Getenv("HOME")
	if home == "" {
		home, _ = os.UserHomeDir()
	}
	dir := o.Settings.Folders.Workspaces
	switch rest, ok := strings.CutPrefix(dir, "~/"); {
	case ok && home == "":
		return "", errors.New("folders.workspaces begins with ~/, and HOME is not set; give an absolute path")
	case ok:
		dir = filepath.Join(home, rest)
	case dir != "":
	case filepath.IsAbs(o.Getenv("XDG_STATE_HOME")):
		dir = filepath.Join(o.Getenv("XDG_STATE_HOME"), "reconcile", "ws")
	case home == "":
		return "", errors.New("there is no folder for workspaces: neither XDG_STATE_HOME nor HOME is set; set folders.workspaces")
	default:
		dir = filepath.Join(home, ".local", "state", "reconcile", "ws")
	}
	return realParent(filepath.Clean(dir)), nil
}

// realParent resolves the symbolic links of the part of a path that exists.
func realParent(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	if parent := filepath.Dir(path); parent != path {
		return filepath.Join(realParent(parent), filepath.Base(path))
	}
	return path
}

// inside reports whether path is dir, or below it.
func inside(dir, path string) bool {
	_, ok := worktree.Within(dir, path)
	return ok
}

// repository opens the repository of the tree, with what is known of it from the last time.
func (m *Manager) repository() (*gitrepo.Repo, error) {
	repo, err := gitrepo.ReopenToCommit(m.tree, m.opened.Load())
	if err == nil {
		m.opened.Store(repo)
	}
	return repo, err
}

// uncommitted says why the work cannot be done in a workspace yet: the files that decide about it and are not as in the
// commit that the workspace would be made from. "" means that it can.
func (m *Manager) uncommitted(ctx context.Context, w *settle.Workspace) (string, error) {
	_, _, why, err := m.base(ctx, w)
	return why, err
}

// base returns the repository, and the commit that a workspace is made from, or why there cannot be one.
func (m *Manager) base(ctx context.Context, w *settle.Workspace) (repo *gitrepo.Repo, base gitrepo.Head, why string, err error) {
	repo, err = m.repository()
	if errors.Is(err, gitrepo.ErrNotARepo) {
		return nil, base, "a workspace is a checkout of a commit, and the tree is in no git repository; make one with git init, and commit", nil
	}
	if err != nil {
		return nil, base, "", err
	}
	if base, err = repo.Base(ctx, w.Target); err != nil {
		return nil, base, "", err
	}
	if base.Hash == "" {
		return repo, base, "a workspace is a checkout of a commit, and the repository has none yet; commit " + w.Spec, nil
	}
	var of []string
	if w.Spec != "" {
		of = []string{w.Spec}
	}
	paths, err := repo.Uncommitted(ctx, base.Hash, of, w.Inputs)
	if err != nil || len(paths) == 0 {
		return repo, base, "", err
	}
	return repo, base, fmt.Sprintf("a workspace is a checkout of a commit, and what the work is made of is not in the last one of "+
		"%s: commit %s", shortRef(base), some(paths)), nil
}

func shortRef(h gitrepo.Head) string {
	if h.Ref == "" {
		return "HEAD"
	}
	return h.Branch()
}

// some lists the first of many names.
func some(names []string) string {
	const most = 5
	text := strings.Join(names[:min(len(names), most)], ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Open implements runner.Workspaces.
func (m *Manager) Open(ctx context.Context, q runner.WorkspaceRequest) (runner.Workspace, string, error) {
	w := q.Task.Workspace
	if w.Kind == settle.CheckWorkspace {
		return m.openCheck(ctx, q)
	}
	repo, base, why, err := m.base(ctx, w)
	if err != nil {
		return nil, "", fmt.Errorf("make a workspace: %w", err)
	}
	if why != "" && w.Declared {
		return nil, "", &runner.NotReadyError{Why: why}
	}
	if why != "" {
		return nil, why, nil
	}
	if m.unusable != nil {
		return nil, "", m.unusable
	}
	o, err := m.claim(ctx, repo, q, base)
	if err != nil {
		return nil, "", fmt.Errorf("make a workspace: %w", err)
	}
	made := &workspace{m: m, repo: repo, owner: o, agent: q.Effect.Agent, node: q.Effect.Node, measure: q.Task.Workspace.Measure, verified: q.Task.Workspace.Verified}
	if o.State == stateCreated {
		if err := m.make(ctx, made, q); err != nil {
			return nil, "", fmt.Errorf("make a workspace: %w", errors.Join(err, m.discard(ctx, repo, o)))
		}
	}
	if err := made.bring(ctx, q.Task.Expects, q.Task.Brings); err != nil {
		return nil, "", fmt.Errorf("prepare the workspace %s: %w", o.Name, err)
	}
	if o, err = m.change(o.Name, opened(q.Effect.Key, q.Task.Workspace.Attempts, proc.Self())); err != nil {
		return nil, "", err
	}
	if made.owner = o; len(q.Task.Workspace.Tests) == 0 && o.Tests == "" {
		return made, "", nil
	}
	if err := made.bringTests(ctx, q.Task.Workspace.Tests); err != nil {
		return nil, "", fmt.Errorf("prepare the workspace %s: %w", o.Name, err)
	}
	return made, "", nil
}

// claim returns the record of the workspace in which attempts of the effect's node have worked, or a new one in the state
// Created.
func (m *Manager) claim(ctx context.Context, repo *gitrepo.Repo, q runner.WorkspaceRequest, base gitrepo.Head) (Owner, error) {
	unlock, err := m.lock()
	if err != nil {
		return Owner{}, err
	}
	defer unlock()
	all, err := m.owners()
	if err != nil {
		return Owner{}, err
	}
	attempts, before := q.Task.Workspace.Attempts, q.Task.Workspace.Before
	for i, o := range all {
		retried := before != "" && o.Attempts == before && o.State == stateWorking
		if o.Name == nameOf(q.Effect.Key) || o.Attempts == attempts || retried {
			aside, err := m.setAside(ctx, repo, o)
			if err != nil {
				return Owner{}, err
			}
			if aside {
				all[i] = Owner{}
				continue
			}
		}
		reusable := o.State == stateWorking || o.State == stateDone && (o.Run == q.Effect.Key || o.Run == q.Task.Workspace.Continues)
		if reusable && (o.Attempts == attempts || retried) && o.Kind == q.Task.Workspace.Kind && exists(m.path(o.Name)) {
			return o, nil
		}
	}
	now := m.o.Now()
	o := Owner{Name: nameOf(q.Effect.Key), Kind: q.Task.Workspace.Kind, State: stateCreated, Run: q.Effect.Key, Process: proc.Self(),
		Owner: q.Effect.Owner.String(), Node: q.Effect.Node, Agent: q.Effect.Agent, Attempts: attempts,
		Base: base.Hash, Branch: q.Task.Workspace.Branch, Target: base.Ref, CreatedAt: now, ChangedAt: now}
	if from, err := present(ctx, repo, q.Task.Workspace.From); err != nil {
		return Owner{}, err
	} else if from != nil {
		o.Base, o.Commit = from.Base, from.Commit
	}
	o.PortBase = m.ports(all)
	for _, old := range all {
		if old.Name == o.Name { // a killed process was making it, or somebody removed its folder
			if err := m.removeLocked(context.Background(), repo, old); err != nil {
				return Owner{}, err
			}
		}
	}
	return o, m.write(o)
}

// present returns a commit of changes if the repository has it, else nil.
func present(ctx context.Context, repo *gitrepo.Repo, c *settle.Commit) (*settle.Commit, error) {
	if c == nil {
		return nil, nil
	}
	for _, hash := range []string{c.Base, c.Commit} {
		if has, err := repo.HasCommit(ctx, hash); err != nil || !has {
			return nil, err
		}
	}
	return c, nil
}

// nameOf is the name of a workspace whose first run has that key: dags/checks/build-0123-1 becomes checks.build-0123-1.
func nameOf(key string) string {
	_, rest, _ := strings.Cut(key, "/")
	return strings.ReplaceAll(rest, "/", ".")
}

func (m *Manager) path(name string) string { return filepath.Join(m.dir, name) }

func (m *Manager) checkout(name string) gitrepo.Checkout {
	return gitrepo.Checkout{Dir: m.path(name), Index: m.path(name + ".index")}
}

// make makes the checkout and prepares it.
func (m *Manager) make(ctx context.Context, w *workspace, q runner.WorkspaceRequest) error {
	co := m.checkout(w.owner.Name)
	if err := errors.Join(os.RemoveAll(co.Dir), os.RemoveAll(co.Index)); err != nil { // no record: of an older version
		return err
	}
	var err error
	switch w.owner.Kind {
	case schemas.WorkspaceClone:
		err = w.repo.Clone(ctx, co, w.owner.Base, w.owner.Branch)
	case schemas.WorkspaceWorktree:
		err = w.repo.AddWorktree(ctx, co, w.owner.Base, w.owner.Branch)
	default:
		err = fmt.Errorf("a workspace of the kind %q is not known", w.owner.Kind)
	}
	if err == nil && w.owner.Commit != "" {
		err = w.repo.Overlay(ctx, co, w.owner.Commit)
	}
	if err != nil {
		return err
	}
	return m.prepare(ctx, w, q)
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
