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
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/proc"
)

// openCheck returns the checkout for the checks of a landing, which the first check makes, or one for an agent that reviews a commit.
func (m *Manager) openCheck(ctx context.Context, q runner.WorkspaceRequest) (runner.Workspace, string, error) {
	if m.unusable != nil {
		return nil, "", m.unusable
	}
	w := *q.Task.Workspace
	if r := q.Task.Review; r != nil {
		w.Commit, w.Attempts = r.Commit, checkName(q.Effect)
	}
	repo, err := gitrepo.OpenToCommit(m.tree)
	if err != nil {
		return nil, "", err
	}
	made := &checkout{workspace{m: m, repo: repo, owner: Owner{Name: w.Attempts, Kind: settle.CheckWorkspace, State: Created, Process: proc.Self(),
		Owner: q.Effect.Owner.String(), Node: q.Effect.Node, Run: q.Effect.Key, Base: w.Commit, Branch: w.Branch}}, q.Task.Review}
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
type checkout struct {
	workspace
	review *settle.Review // the run that it is for; nil: the checks of a landing, or of a verification
}

// Commit implements runner.Workspace.
func (*checkout) Commit(context.Context, time.Time, []string, []string) (*schemas.RunWorkspace, error) {
	return nil, nil
}

// Changes implements runner.Workspace: for a review, they are those of the commit.
func (c *checkout) Changes(ctx context.Context) ([]string, []byte, error) {
	if c.review == nil {
		return nil, nil, nil
	}
	diff, err := c.repo.Diff(ctx, gitrepo.Comparison{From: c.review.Base, To: c.review.Commit})
	return nil, diff, err
}

// Close implements runner.Workspace. A review drops the checkout, which verifications share.
func (c *checkout) Close() error {
	if c.review == nil {
		return nil
	}
	return c.m.dropCheck(c.owner.Name)
}

// gone reports whether a record does not exist any more.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || os.IsNotExist(err) }
