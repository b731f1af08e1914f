package workspaces

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/cmd/reconcile/internal/runner"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/proc"
)

// checkKind is the kind of a workspace in which a commit is checked before it lands. Nothing of it is kept.
const checkKind = "check"

// openCheck returns the checkout for the checks of a landing; the first check makes it.
func (m *Manager) openCheck(ctx context.Context, q runner.WorkspaceRequest) (runner.Workspace, string, error) {
	if m.unusable != nil {
		return nil, "", m.unusable
	}
	w := q.Task.Workspace
	repo, err := gitrepo.OpenToCommit(m.tree)
	if err != nil {
		return nil, "", err
	}
	made := &checkout{workspace{m: m, repo: repo, owner: Owner{Name: w.Attempts, Kind: checkKind, State: Created, Process: proc.Self(),
		Owner: q.Effect.Owner.String(), Node: q.Effect.Node, Run: q.Effect.Key, Base: w.Commit, Branch: w.Branch}}}
	if exists(m.path(w.Attempts)) {
		if made.owner, err = m.read(w.Attempts); err == nil && made.owner.Base == w.Commit && made.owner.Process == proc.Self() {
			return made, "", nil
		}
		if err := m.dropCheck(w.Attempts); err != nil { // of a killed process
			return nil, "", err
		}
		return m.openCheck(ctx, q)
	}
	if err := m.addCheck(&made.owner); err != nil {
		return nil, "", err
	}
	co := m.checkout(w.Attempts)
	if err := repo.Clone(ctx, co, w.Commit, w.Branch); err != nil {
		return nil, "", fmt.Errorf("make a checkout for the checks: %w", errors.Join(err, m.dropCheck(w.Attempts)))
	}
	if err := m.prepare(ctx, &made.workspace, q); err != nil {
		return nil, "", fmt.Errorf("prepare the checkout for the checks: %w", errors.Join(err, m.dropCheck(w.Attempts)))
	}
	return made, "", nil
}

// addCheck writes the record of a checkout for checks.
func (m *Manager) addCheck(o *Owner) error {
	unlock, err := m.lock()
	if err != nil {
		return err
	}
	defer unlock()
	all, err := m.owners()
	if err != nil {
		return err
	}
	o.PortBase, o.CreatedAt, o.ChangedAt = m.ports(all), m.o.Now(), m.o.Now()
	return m.write(*o)
}

// dropCheck removes a checkout for checks, if there is one.
func (m *Manager) dropCheck(name string) error {
	if m.unusable != nil || !exists(m.path(name)) && !exists(m.path(name+recordSuffix)) {
		return nil
	}
	unlock, err := m.lock()
	if err != nil {
		return err
	}
	defer unlock()
	return errors.Join(removeAll(m.path(name)), removeIfThere(m.path(name+".index")), removeIfThere(m.path(name+recordSuffix)))
}

// checkout implements runner.Workspace for checks, which leave nothing.
type checkout struct{ workspace }

// Commit implements runner.Workspace.
func (*checkout) Commit(context.Context, time.Time, []string, []string) (*schemas.RunWorkspace, error) {
	return nil, nil
}

// Changes implements runner.Workspace.
func (*checkout) Changes(context.Context) ([]string, []byte, error) { return nil, nil, nil }

// Close implements runner.Workspace.
func (*checkout) Close() error { return nil }

// gone reports whether a record does not exist any more.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || os.IsNotExist(err) }
