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
		Short:   "Tell what a run would do, and why, without doing it",
		Long: `Tell what a run would do, and why, without doing it: no file is changed and nothing runs.

What follows from the results of commands cannot be known before they ran: nodes that wait for others are listed as
what they will do if those succeed.

With --base, tell what a commit would do that is not merged yet, beyond what a run does without it, and what that costs
at most; with --pull-request, in one comment on it, which is edited when something changes.

With --github, print each call that would bring the issues on GitHub up to date with the tree as it is. What stands there
is looked at, and nothing is changed.`,
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
	f.StringVar(&q.Base, "base", "", "plan what the specs of --head would do over the settings and the state of `COMMIT`")
	f.StringVar(&q.Head, "head", "", "the `COMMIT` whose specs count (default HEAD)")
	f.IntVar(&q.PullRequest, "pull-request", 0, "say so in a comment on the pull request `NUMBER`")
	f.StringVar(&q.Out, "out", "", "write it to `FILE` instead, for --from")
	f.StringVar(&q.From, "from", "", "say what `FILE` holds, if its pull request is at --head")
	f.BoolVar(&onGitHub, "github", false, "print the calls that would bring the issues on GitHub up to date, without making them")
	a.outputFlag(cmd, cmd.Flags(), formatTable, formatJSON, formatYAML, formatMarkdown, formatGitHub)
	return cmd
}

// planned is the -o json output for one step of a plan.
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
	switch a.global.output {
	case formatTable:
		err = a.planTable(r)
	case formatGitHub:
		err = render.GitHub(a.stdout, a.repositoryPath(), r.Problems)
	default:
		steps := []planned{}
		for _, step := range r.Steps {
			steps = append(steps, planned{step.Ref.String(), step.Node, step.Verb, step.Why})
		}
		err = a.print(steps)
	}
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
	if table.Len() == 0 && !a.global.quiet {
		fmt.Fprintln(a.stdout, "nothing to do")
	}
	return table.Write(a.stdout)
}
