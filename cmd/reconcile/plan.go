package main

import (
	"cmp"
	"context"
	"errors"

	"github.com/spf13/cobra"
	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers/mirror"
	"reconcile.dev/reconcile/schemas"
)

func newPlanCmd(a *app) *cobra.Command {
	q, onGitHub := &ops.PlanChangeRequest{}, false
	cmd := &cobra.Command{
		Use:     "plan",
		Aliases: []string{"diff"},
		Short:   "Show what a run would do, and why, without doing it",
		Long: `Show what a run would do, and why, without doing it: no file is changed and nothing runs.
Results of commands are not known before they run: for nodes that wait for others, the plan assumes that those succeed.

With --base, show what an unmerged commit would add to the next run, with an upper bound of the cost; with --pull-request,
in a single comment on it, which is edited when the plan changes.

With --github, print each call that would update the issues on GitHub from the present tree. The issues are read, and
nothing is changed.`,
		Example: "  reconcile plan\n  reconcile plan -o json\n" +
			"  reconcile plan --github                                # what would be said on issues\n" +
			"  reconcile plan --base origin/main                      # what this branch would do\n" +
			"  reconcile plan --base origin/main --pull-request 12    # and say so there",
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkPlan(cmd, q, onGitHub, a.global.output); err != nil {
				return err
			}
			switch {
			case onGitHub:
				return a.planGitHub(cmd.Context())
			case q.From != "" || q.Base != "":
				return a.planChange(cmd.Context(), *q)
			}
			return a.plan(cmd.Context())
		},
	}
	f := cmd.Flags()
	f.StringVar(&q.Base, "base", "", "plan the specs of --head with the settings and the state of `COMMIT`")
	f.StringVar(&q.Head, "head", "", "the `COMMIT` with the specs (default HEAD)")
	f.IntVar(&q.PullRequest, "pull-request", 0, "comment the plan on the pull request `NUMBER`")
	f.StringVar(&q.Out, "out", "", "write the plan to `FILE` instead, for --from")
	f.StringVar(&q.From, "from", "", "comment the plan in `FILE`, if its pull request is at --head")
	f.BoolVar(&onGitHub, "github", false, "print the calls that would update the issues on GitHub, without making them")
	a.outputFlag(cmd, cmd.Flags(), formatTable, formatJSON, formatYAML, formatMarkdown, formatGitHub)
	return cmd
}

// planned is the -o json output for one step of a plan, or, with the verb wait, for what waits.
type planned struct {
	Ref  string `json:"ref"`
	Node string `json:"node,omitempty"`
	Verb string `json:"verb"`
	Why  string `json:"why"`
}

func (a *app) plan(ctx context.Context) error {
	r, err := ops.Plan(ctx, a.env(), ops.PlanRequest{Advice: a.global.output == formatGitHub})
	if err != nil {
		return err
	}
	steps := []planned{}
	for _, step := range r.Steps {
		steps = append(steps, planned{step.Ref.String(), step.Node, step.Verb, step.Why})
	}
	shown := steps
	for _, w := range r.Waits {
		steps = append(steps, planned{w.Ref, w.Node, "wait", w.Why})
	}
	err = a.problemReport(steps, r.Problems, func() error {
		nothing := ""
		if len(r.Waits) == 0 {
			nothing = "nothing to do"
		}
		err := errors.Join(a.problems(r.Problems), a.planTable(shown, nothing))
		for _, w := range r.Waits {
			a.conclude(false, "%s", render.Line(w.String()))
		}
		a.planCost(&r.Bounds)
		if r.AsOf != "" {
			a.conclude(false, "%s", r.AsOf)
		}
		return err
	})
	return errors.Join(err, exitWith(int(r.Verdict)))
}

// planTable prints the steps of a plan, or else that there is nothing.
func (a *app) planTable(steps []planned, nothing string) error {
	if len(steps) == 0 && nothing != "" {
		a.conclude(false, "%s", nothing)
	}
	return a.table(len(steps), "", func(i int) []string {
		return []string{steps[i].Ref, render.Word(steps[i].Node).Text, steps[i].Verb, steps[i].Why}
	}, "OBJECT", "NODE", "WOULD", "WHY")
}

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
		a.printf("%s\n", p.Body())
		return nil
	}
	return a.problemReport(p, problems, func() error {
		err := render.Problems(a.stdout, a.palette(), problems)
		if len(problems) > 0 {
			a.printf("\n")
		}
		steps := make([]planned, len(p.Steps))
		for i, s := range p.Steps {
			steps[i] = planned{s.Ref, s.Node, s.Verb, s.Why}
		}
		err = errors.Join(err, a.planTable(steps, "nothing would change"))
		a.planCost(&p.Bounds)
		return err
	})
}

// planCost prints what the runs of a plan cost at most.
func (a *app) planCost(b *mirror.PullBounds) {
	if cost := b.Cost(); cost != "" {
		a.conclude(true, "at most %s", cost)
	}
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
	return errors.Join(a.result(append([]github.Call{}, planned.Calls...), nil, func() error {
		if len(planned.Calls) == 0 && err == nil {
			a.conclude(false, "nothing to do")
		}
		for _, c := range planned.Calls {
			a.printf("%s\n", render.Line(c.String()))
		}
		return nil
	}), err)
}

func newValidateCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate [PATH…]",
		Short: "Check the spec files, and report all problems at once",
		Long: `Check the spec files of the tree with the code of a run: a run accepts what validate accepts. Valid specs that probably do
not work as intended give a warning: a question that its agent may not ask, a program that is not found, inputs that match
nothing, a field without effect.

A PATH limits the report to a file or folder. Files outside the tree's specs are checked individually: their references
are not resolved. The exit code is 3 after errors; warnings do not change it.`,
		Example: "  reconcile validate\n" +
			"  reconcile validate specs/dags -o json\n" +
			"  reconcile validate -o github    # annotations in GitHub Actions\n" +
			"  reconcile validate -o sarif > reconcile.sarif",
		RunE: func(cmd *cobra.Command, args []string) error {
			v, err := ops.Validate(cmd.Context(), a.env(), ops.ValidateRequest{Paths: args})
			if err != nil {
				return err
			}
			err = a.problemReport(v, v.Problems, func() error {
				verdict := "no problems"
				if len(v.Problems) > 0 {
					verdict = schemas.Count(v.Errors, "error") + ", " + schemas.Count(v.Warnings, "warning")
				}
				err := render.Problems(a.stdout, a.palette(), v.Problems)
				a.conclude(len(v.Problems) > 0, "%s checked, %s", schemas.Count(v.Files, "file"), verdict)
				return err
			})
			return cmp.Or(err, exitWith(int(v.Verdict())))
		},
	}
	a.outputFlag(cmd, cmd.Flags(), formatTable, formatJSON, formatYAML, formatSARIF, formatGitHub)
	return cmd
}
