package ops

import (
	"cmp"
	"context"
	"path/filepath"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/plan"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/tree"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/mirror"
	"reconcile.dev/reconcile/schemas"
)

// PlanRequest asks what a run would do to the tree as it is.
type PlanRequest struct {
	Advice bool // also look for what is valid and probably does not do what it is meant to
}

// PlanResult is what a run would do.
type PlanResult struct {
	Steps    []controllers.Step
	Problems []schemas.Problem // of the files, and with Advice also warnings about valid ones
	Verdict  Code              // OK, Invalid or NotReady: the state of the objects before the run
}

// Plan tells what a run would do, and changes nothing.
func Plan(ctx context.Context, env Env, q PlanRequest) (PlanResult, error) {
	s, t, err := env.load(ctx)
	if err != nil {
		return PlanResult{}, typed(err)
	}
	defer s.Close()
	r := PlanResult{Steps: controllers.Plan(t, env.Tree.Now()), Verdict: Code(controllers.Verdict(t)), Problems: t.Problems()}
	if q.Advice {
		r.Problems = tree.Problems(s, t)
	}
	return r, nil
}

// PlanChangeRequest asks what a change would do that is not merged yet.
type PlanChangeRequest struct {
	Base, Head  string // revisions; "": no base, and for the head HEAD
	PullRequest int    // the number of the pull request that is told; 0: none
	Out         string // the file that the plan is written to instead; "": none
	// From is the file of a plan that was made elsewhere, which is told if its pull request is at Head; "": it is made now.
	From string
}

// ChangePlan is what a change would do.
type ChangePlan struct {
	Pull     *mirror.Pull
	Problems []schemas.Problem
	Head     string              // the commit that was planned, as the pull request has it
	Said     *plan.CommentResult // what was done with the comment on the pull request; nil: nothing was tried
	Verdict  Code                // Invalid if specs of the change are
}

// PlanChange tells what a commit would do over the settings and the state of another, and says so on a pull request where that
// is asked for. The plan counts also with an error.
func PlanChange(ctx context.Context, env Env, q PlanChangeRequest) (r ChangePlan, err error) {
	heads := []string{q.Head}
	if q.From != "" {
		r.Head = q.Head
		r.Pull, err = plan.Load(env.within(q.From), q.From)
	} else {
		heads, err = env.planBetween(ctx, q, &r)
	}
	if err != nil {
		return r, typed(err)
	}
	switch {
	case q.Out != "":
		err = plan.Save(env.within(q.Out), q.Out, r.Pull)
	case q.From != "" || q.PullRequest != 0:
		var said plan.CommentResult
		if said, err = plan.Comment(ctx, env.Tree, r.Pull, heads); err == nil {
			r.Said = &said
		}
	}
	return r, typed(err)
}

// planBetween makes the plan, and returns the commits at which the pull request may be.
func (e Env) planBetween(ctx context.Context, q PlanChangeRequest, r *ChangePlan) ([]string, error) {
	repo, base, err := e.Tree.Revision(ctx, q.Base)
	if err != nil {
		return nil, err
	}
	head, err := repo.Resolve(ctx, cmp.Or(q.Head, "HEAD"))
	if err != nil {
		return nil, err
	}
	if r.Pull, r.Problems, err = plan.Between(ctx, e.Tree, repo, base, head); err != nil {
		return nil, err
	}
	if r.Pull.Number = q.PullRequest; r.Pull.Errors > 0 {
		r.Verdict = Invalid
	}
	r.Head = head
	if q.PullRequest != 0 && q.Out == "" {
		if second, err := repo.Resolve(ctx, head+"^2"); err == nil {
			r.Head = second // a merge that GitHub made to try it has the pull request's head as its second parent
		}
	}
	return []string{head, r.Head}, nil
}

// within is a file that is named from where the caller is.
func (e Env) within(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(e.Tree.Dir, e.Prefix, name)
}

// PlanGitHub tells which calls would bring GitHub's issues up to date with the tree, without making them. What is there is
// read. nil: nothing could be read; with an error the calls may lack some.
func PlanGitHub(ctx context.Context, env Env) (*plan.Calls, error) {
	s, t, err := env.load(ctx)
	if err != nil {
		return nil, typed(err)
	}
	defer s.Close()
	calls, err := plan.GitHub(ctx, env.Tree, s, t)
	return calls, typed(err)
}
