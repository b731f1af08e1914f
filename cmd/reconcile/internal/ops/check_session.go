package ops

import (
	"context"
	"slices"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/checking"
	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/sessions"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// OfSession relates a result to a session. Everything on the session's branch is checked.
type OfSession struct {
	Name   string   `json:"name"`
	Branch string   `json:"branch,omitempty"` // "": the one that is checked out
	Files  []string `json:"files"`            // that its nodes changed and landed, sorted
	More   int      `json:"more,omitempty"`   // number of changes of files that the records only count
	Found  int      `json:"found"`            // number of findings or failed tests in Files
}

// openSession finds the session of a request, and what its nodes changed. Its branch must be checked out.
func (p *project) openSession(ctx context.Context, q *CheckRequest) error {
	if len(q.Paths) > 0 || q.Changed || q.Base != "" {
		return badRequest("for a session everything is checked; leave out PATH, --changed and --base")
	}
	s, t, err := p.env.load(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	e, err := findSession(t, q.Session)
	if err != nil {
		return badRequest("%w", err)
	}
	p.session = &OfSession{Name: e.Name, Branch: state.SpecOf[*schemas.SessionSpec](e).Branch}
	p.session.Files, p.session.More = sessions.LandedFiles(t, e.Name)
	if b := p.session.Branch; b != "" && !q.Last {
		on, err := checking.At(ctx, p.root, "refs/heads/"+b)
		if err != nil {
			return badRequest("%s works on the branch %s: %v", e.Ref, b, err)
		}
		if !on {
			return badRequest("%s works on the branch %s, and another commit is checked out here; switch to it, or run this in a work tree of it: git worktree add DIR %[2]s", e.Ref, b)
		}
	}
	return nil
}

// BySession divides the checks of a result: findings in files that its session changed, and all others. There has to be a
// session. n is the number of findings and failed tests in own.
func (c *Checked) BySession() (own, others []checks.Check, n int) {
	return checks.Partition(c.Checks, func(file string) bool {
		_, found := slices.BinarySearch(c.Session.Files, file)
		return found
	})
}

// sessionFirst sorts findings in files that the session changed before all others, check by check, and counts them.
func (c *Checked) sessionFirst() {
	if c.Session == nil {
		return
	}
	own, others, n := c.BySession()
	c.Session.Found = n
	for i := range c.Checks {
		c.Checks[i].Findings = append(own[i].Findings, others[i].Findings...)
		c.Checks[i].Tests = append(own[i].Tests, others[i].Tests...)
	}
}
