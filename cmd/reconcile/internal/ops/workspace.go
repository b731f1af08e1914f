package ops

import (
	"context"
	"os"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/workspaces"
	"reconcile.dev/reconcile/cmd/reconcile/internal/runner"
	"reconcile.dev/reconcile/state"
)

// Workspace is a folder in which an agent works, or has worked.
type Workspace struct {
	Name   string    `json:"name"`
	State  string    `json:"state"` // created, working, done, landed or parked
	Kind   string    `json:"kind"`
	Owner  string    `json:"owner"`
	Node   string    `json:"node"`
	Agent  string    `json:"agent,omitempty"`
	Run    string    `json:"run"`
	Dir    string    `json:"dir"`
	Bytes  int64     `json:"bytes"`
	Base   string    `json:"base"`
	Branch string    `json:"branch"`
	Commit string    `json:"commit,omitempty"`
	Parked string    `json:"parked,omitempty"`
	InUse  bool      `json:"inUse,omitempty"`
	Gone   bool      `json:"gone,omitempty"` // its folder was removed
	Since  time.Time `json:"since"`
}

// Workspaces lists the workspaces of the tree by name.
func Workspaces(ctx context.Context, env Env) (list []Workspace, err error) {
	defer func() { err = typed(err) }()
	m, err := env.workspaces(ctx)
	if err != nil {
		return nil, err
	}
	all, err := m.List()
	if err != nil {
		return nil, err
	}
	list = []Workspace{}
	for _, w := range all {
		list = append(list, workspaceOf(w))
	}
	return list, nil
}

// FindWorkspace returns the workspace with that name, with a name that begins so, or of that node.
func FindWorkspace(ctx context.Context, env Env, name string) (w Workspace, err error) {
	defer func() { err = typed(err) }()
	m, err := env.workspaces(ctx)
	if err != nil {
		return w, err
	}
	found, err := m.Find(name)
	if err != nil {
		return w, badRequest("%v", err)
	}
	return workspaceOf(found), nil
}

// DiffWorkspace returns what differs in a workspace from the commit that it was made from, as git diff prints it.
func DiffWorkspace(ctx context.Context, env Env, name string) (diff []byte, err error) {
	defer func() { err = typed(err) }()
	m, err := env.workspaces(ctx)
	if err != nil {
		return nil, err
	}
	found, err := m.Find(name)
	if err != nil {
		return nil, badRequest("%v", err)
	}
	return m.Diff(ctx, found.Name)
}

// DropWorkspaceResult says what a DropWorkspace did.
type DropWorkspaceResult struct {
	Name string `json:"name"`
	// Parked is the reference to uncommitted changes of the workspace; "" without any.
	Parked string `json:"parked,omitempty"`
}

// DropWorkspace deletes a workspace after it has committed its uncommitted changes to a reference. Only people may.
func DropWorkspace(ctx context.Context, env Env, name string) (r DropWorkspaceResult, err error) {
	defer func() { err = typed(err) }()
	if err := env.authorize("DropWorkspace"); err != nil {
		return r, err
	}
	m, err := env.workspaces(ctx)
	if err != nil {
		return r, err
	}
	found, err := m.Find(name)
	if err != nil {
		return r, badRequest("%v", err)
	}
	r.Name = found.Name
	r.Parked, err = m.Drop(ctx, found.Name)
	return r, err
}

func (e Env) workspaces(ctx context.Context) (*workspaces.Manager, error) {
	s, t, err := e.load(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return e.workspacesOf(t)
}

func (e Env) workspacesOf(t *state.Tree) (*workspaces.Manager, error) {
	return workspaces.New(workspaces.Options{Dir: e.Tree.Dir, Settings: t.Settings(), Now: e.Tree.Now, Getenv: e.Tree.Getenv, Warn: e.warn,
		Secrets: runner.FindSecrets(os.Environ(), e.Tree.Dir)})
}

func workspaceOf(w workspaces.Workspace) Workspace {
	return Workspace{Name: w.Name, State: string(w.State), Kind: w.Kind, Owner: w.Owner.Owner, Node: w.Node, Agent: w.Agent, Run: w.Run,
		Dir: w.Dir, Bytes: w.Bytes, Base: w.Base, Branch: w.Branch, Commit: w.Commit, Parked: w.Parked, InUse: w.InUse, Gone: w.Gone,
		Since: w.ChangedAt}
}
