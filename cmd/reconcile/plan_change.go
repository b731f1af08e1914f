package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers/mirror"
	"reconcile.dev/reconcile/schemas"
)

// checkPlan refuses conflicting flags.
func checkPlan(cmd *cobra.Command, q *ops.PlanChangeRequest, onGitHub bool, format string) error {
	given := cmd.Flags().Changed
	switch {
	case onGitHub && (q.Base != "" || q.From != "" || q.Head != "" || q.PullRequest != 0 || q.Out != ""):
		return badUsage("--github is about the issues of the tree: leave out the other flags")
	case onGitHub && (format == formatMarkdown || format == formatGitHub):
		return badUsage("-o %s does not go with --github: use table, json or yaml", format)
	case given("pull-request") && q.PullRequest < 1:
		return badUsage("--pull-request %d: it is the number of a pull request", q.PullRequest)
	case q.From != "" && (given("base") || given("out") || given("pull-request")):
		return badUsage("--from has everything but --head: leave out --base, --out and --pull-request")
	case q.From != "" && q.Head == "":
		return badUsage("--from needs --head: the commit that the pull request is at, as whoever is to be trusted says; in a " +
			"workflow, github.event.workflow_run.head_sha")
	case q.From != "":
		return nil
	case q.Base == "" && (q.Head != "" || q.PullRequest != 0 || q.Out != ""):
		return badUsage("--head, --pull-request and --out need --base: the commit to merge into, for example --base origin/main")
	case q.Out != "" && q.PullRequest == 0:
		return badUsage("--out needs --pull-request: what is written says whose it is")
	case q.Base == "" && format == formatMarkdown:
		return badUsage("-o %s needs --base: it is what is said on a pull request", format)
	}
	return nil
}

// planChange prints what a change would do, and the outcome of the comment on its pull request.
func (a *app) planChange(ctx context.Context, q ops.PlanChangeRequest) error {
	r, err := ops.PlanChange(ctx, a.env(), q)
	if r.Pull == nil {
		return err
	}
	if failed := a.printPull(r.Pull, r.Problems); failed != nil {
		return failed
	}
	switch {
	case r.Said == nil:
	case r.Said.At != "":
		a.note("pull request #%d is at %.10s, and this plan is of %.10s: nothing was said there; plan again", r.Pull.Number, r.Said.At,
			r.Head)
	default:
		a.note("pull request #%d: %s", r.Pull.Number, map[github.Stuck]string{
			github.StuckNothing: "it changes no specs, nothing was said", github.StuckSame: "the comment says so already",
			github.StuckEdited: "the comment was edited", github.StuckCreated: "a comment was made"}[r.Said.Did])
	}
	return errors.Join(err, exitWith(int(r.Verdict)))
}

// printPull prints a plan between two commits.
func (a *app) printPull(p *mirror.Pull, problems []schemas.Problem) error {
	if a.global.output == formatMarkdown {
		_, err := fmt.Fprintln(a.stdout, p.Body())
		return err
	}
	return a.problemReport(p, problems, func() error { return a.pullTable(p, problems) })
}

func (a *app) pullTable(p *mirror.Pull, problems []schemas.Problem) error {
	err := render.Problems(a.stdout, a.palette(), problems)
	if len(problems) > 0 {
		fmt.Fprintln(a.stdout)
	}
	table := render.NewTable(a.palette(), "OBJECT", "NODE", "WOULD", "WHY")
	for _, s := range p.Steps {
		table.Row(s.Ref, render.Word(s.Node).Text, s.Verb, s.Why)
	}
	if table.Len() == 0 && !a.global.quiet {
		fmt.Fprintln(a.stdout, "nothing would change")
	}
	err = errors.Join(err, table.Write(a.stdout))
	a.planCost(&p.Bounds)
	return err
}

// planCost prints what the runs of a plan cost at most.
func (a *app) planCost(b *mirror.PullBounds) {
	if cost := b.Cost(); cost != "" && !a.global.quiet {
		fmt.Fprintf(a.stdout, "\nat most %s\n", cost)
	}
}

// plannedCall is the -o json output for a call that would change something on GitHub.
type plannedCall struct {
	Method string          `json:"method"`
	Path   string          `json:"path"`
	Body   json.RawMessage `json:"body,omitempty"`
}

// planGitHub prints each call that would update GitHub from the tree.
func (a *app) planGitHub(ctx context.Context) error {
	planned, err := ops.PlanGitHub(ctx, a.env())
	if planned == nil {
		return err
	}
	for _, n := range planned.Notes {
		a.note("%s", n)
	}
	calls := []plannedCall{}
	for _, c := range planned.Calls {
		calls = append(calls, plannedCall{c.Method, c.Path, c.Body})
	}
	return errors.Join(a.printCalls(calls, err == nil), err)
}

// printCalls prints calls; whole says that the list is complete.
func (a *app) printCalls(calls []plannedCall, whole bool) error {
	if a.global.output != formatTable {
		return a.print(calls)
	}
	if len(calls) == 0 && whole && !a.global.quiet {
		fmt.Fprintln(a.stdout, "nothing to do")
	}
	for _, c := range calls {
		if _, err := fmt.Fprintln(a.stdout, render.Line(github.Call(c).String())); err != nil {
			return err
		}
	}
	return nil
}
