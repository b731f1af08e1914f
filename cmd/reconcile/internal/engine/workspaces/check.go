package workspaces

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/cmd/reconcile/internal/runner"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/proc"
)

// openCheck returns the checkout for the checks of a landing or a verification, which the first check makes, or one for an agent that reviews a commit.
func (m *Manager) openCheck(ctx context.Context, q runner.WorkspaceRequest) (runner.Workspace, string, error) {
	if m.unusable != nil {
		return nil, "", m.unusable
	}
	w := *q.Task.Workspace
	if r := q.Task.Review; r != nil {
		w.Commit, w.Attempts = r.Commit, checkName(q.Effect)
	}
	repo, err := m.repository()
	if err != nil {
		return nil, "", err
	}
	made := &checkout{workspace{m: m, repo: repo, measure: w.Measure, verified: w.Verified}, w.Attempts, q.Task.Review}
	used, ok := m.checkOf(w.Attempts)
	if ok && used.Base == w.Commit {
		made.owner = used
		return made, "", nil
	}
	if err := m.freeCheck(w.Attempts, false); err != nil {
		return nil, "", err
	}
	var renew bool
	if made.owner, renew, err = m.takeCheck(w.Attempts, w.Commit, w.Branch); err != nil {
		return nil, "", err
	}
	if err := m.makeCheck(ctx, made, q, renew); err != nil {
		return nil, "", fmt.Errorf("make a checkout for the checks: %w", errors.Join(err, m.freeCheck(w.Attempts, false)))
	}
	if made.review != nil {
		o := &made.owner
		o.Agent, o.Owner, o.Node, o.Run = q.Effect.Agent, q.Effect.Owner.String(), q.Effect.Node, q.Effect.Key
		if err := m.placeTests(ctx, repo, o.Name, made.review.Tests, w.Commit); err != nil {
			return nil, "", fmt.Errorf("prepare the checkout for the tests: %w", errors.Join(err, m.freeCheck(w.Attempts, false)))
		}
	}
	return made, "", nil
}

// makeCheck makes a checkout for checks that of its commit: by what differs if it was one of another commit, and that can be told; else anew.
func (m *Manager) makeCheck(ctx context.Context, made *checkout, q runner.WorkspaceRequest, renew bool) error {
	o, co := made.owner, m.checkout(made.owner.Name)
	if !renew || made.repo.Renew(ctx, co, o.Base, o.Branch) != nil {
		if err := errors.Join(removeAll(co.Dir), removeIfThere(co.Index)); err != nil {
			return err
		}
		if err := made.repo.Clone(ctx, co, o.Base, o.Branch); err != nil {
			return err
		}
	}
	return m.prepare(ctx, &made.workspace, q)
}

// checkOf is the checkout that has this user.
func (m *Manager) checkOf(user string) (Owner, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	o, ok := m.checks[user]
	return o, ok
}

// takeCheck gives a user a checkout for checks. renew says that it is one of some commit, in which nothing is at work.
func (m *Manager) takeCheck(user, commit, branch string) (o Owner, renew bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if n := len(m.spare); n > 0 {
		o, m.spare = m.spare[n-1], m.spare[:n-1]
		renew = true
	} else if o, renew, err = m.claimCheck(); err != nil {
		return o, false, err
	}
	o.Base, o.Branch = commit, branch
	m.checks[user] = o
	return o, renew, nil
}

// claimCheck claims the first checkout for checks that no process uses. Their names are few, so that tools find their caches again.
func (m *Manager) claimCheck() (o Owner, renew bool, err error) {
	unlock, err := m.lock()
	if err != nil {
		return o, false, err
	}
	defer unlock()
	all, err := m.owners()
	if err != nil {
		return o, false, err
	}
	for n := 1; ; n++ {
		name := fmt.Sprint("check.", n)
		i := slices.IndexFunc(all, func(o Owner) bool { return o.Name == name })
		if i >= 0 && all[i].inUse() {
			continue
		}
		o = Owner{Name: name, Kind: settle.CheckWorkspace, State: stateCreated, Process: proc.Self(), PortBase: m.ports(all), CreatedAt: m.o.Now(), ChangedAt: m.o.Now()}
		return o, i >= 0 && all[i].State == stateSpare, m.write(o)
	}
}

// freeCheck takes the checkout for checks from a user who has one. clean says that its checks have ended, and nothing that they started is at work: then it
// can be that of another commit.
func (m *Manager) freeCheck(user string, clean bool) error {
	m.mu.Lock()
	o, ok := m.checks[user]
	delete(m.checks, user)
	if ok && clean && runner.EndsOrphans {
		m.spare = append(m.spare, o)
		ok = false
	}
	m.mu.Unlock()
	if !ok {
		return nil
	}
	return m.dropCheck(o.Name)
}

// dropCheck removes a checkout for checks.
func (m *Manager) dropCheck(name string) error {
	unlock, err := m.lock()
	if err != nil {
		return err
	}
	defer unlock()
	return errors.Join(removeAll(m.path(name)), removeIfThere(m.path(name+".index")), removeIfThere(m.path(name+recordSuffix)))
}

// leaveChecks leaves as many checkouts for checks to later processes as there are processors, and removes the others.
func (m *Manager) leaveChecks() (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	slices.SortFunc(m.spare, func(a, b Owner) int { return strings.Compare(a.Name, b.Name) })
	for i, o := range m.spare {
		if i >= runtime.NumCPU() {
			err = errors.Join(err, m.dropCheck(o.Name))
			continue
		}
		_, e := m.change(o.Name, spared)
		err = errors.Join(err, e)
	}
	m.spare = nil
	return err
}

// checkout implements runner.Workspace for checks, which leave nothing, and for agents that write tests.
type checkout struct {
	workspace
	user   string
	review *settle.Review // the run that it is for; nil: the checks of a landing, or of a verification
}

// Commit implements runner.Workspace.
func (c *checkout) Commit(ctx context.Context, at time.Time, _, _ []string) (*schemas.RunWorkspace, error) {
	if c.review == nil || c.review.Step != schemas.StepWrite {
		return nil, nil
	}
	return c.commitTests(ctx, at)
}

// Changes implements runner.Workspace: for a review, they are those of the commit.
func (c *checkout) Changes(ctx context.Context) ([]string, []byte, error) {
	if c.review == nil {
		return nil, nil, nil
	}
	diff, err := c.repo.Diff(ctx, gitrepo.Comparison{From: c.review.Base, To: c.review.Commit})
	return nil, diff, err
}

// Close implements runner.Workspace. Who has checks run frees their checkout, which they share.
func (c *checkout) Close() error {
	if c.review == nil {
		return nil
	}
	return c.m.freeCheck(c.user, false)
}

// gone reports whether a record does not exist any more.
func gone(err error) bool { return errors.Is(err, fs.ErrNotExist) || os.IsNotExist(err) }
