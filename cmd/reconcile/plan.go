package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
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
	for _, w := range r.Waits {
		steps = append(steps, planned{w.Ref, w.Node, "wait", w.Why})
	}
	err = a.problemReport(steps, r.Problems, func() error { return a.planTable(r) })
	return errors.Join(err, exitWith(int(r.Verdict)))
}

func (a *app) planTable(r ops.PlanResult) error {
	if err := a.problems(r.Problems); err != nil {
		return err
	}
	table := render.NewTable(a.palette(), "OBJECT", "NODE", "WOULD", "WHY")
	for _, step := range r.Steps {
		table.Row(step.Ref.String(), render.Word(step.Node).Text, step.Verb, step.Why)
	}
	if table.Len() == 0 && len(r.Waits) == 0 && !a.global.quiet {
		fmt.Fprintln(a.stdout, "nothing to do")
	}
	err := table.Write(a.stdout)
	if !a.global.quiet {
		for _, w := range r.Waits {
			fmt.Fprintln(a.stdout, render.Line(w.String()))
		}
	}
	a.planCost(&r.Bounds)
	if r.AsOf != "" && !a.global.quiet {
		fmt.Fprintln(a.stdout, r.AsOf)
	}
	return err
}
