package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/state"
)

func newPlanCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "plan",
		Aliases: []string{"diff"},
		Short:   "Tell what a run would do, and why, without doing it",
		Long: `Tell what a run would do, and why, without doing it: no file is changed and nothing runs.

What follows from the results of commands cannot be known before they ran: nodes that wait for others are listed as
what they will do if those succeed.`,
		Example: "  reconcile plan\n  reconcile plan -o json",
		Args:    arguments(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.plan(cmd.Context()) },
	}
}

// planned is one step of a plan as -o json prints it.
type planned struct {
	Ref  string `json:"ref"`
	Node string `json:"node,omitempty"`
	Verb string `json:"verb"`
	Why  string `json:"why"`
}

func (a *app) plan(ctx context.Context) error {
	s, t, err := a.load(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	steps := []planned{}
	table := render.NewTable(a.palette(), "OBJECT", "NODE", "WOULD", "WHY")
	for _, step := range controllers.Plan(t, a.now()) {
		steps = append(steps, planned{step.Ref.String(), step.Node, step.Verb, step.Why})
		table.Row(step.Ref.String(), orDash(step.Node).Text, step.Verb, a.fit(step.Why))
	}
	if a.global.output != formatTable {
		err = a.print(steps)
	} else {
		err = a.planTable(t, table)
	}
	return errors.Join(err, exitWith(int(controllers.Verdict(t))))
}

func (a *app) planTable(t *state.Tree, table *render.Table) error {
	if err := a.problems(t); err != nil {
		return err
	}
	if table.Len() == 0 && !a.global.quiet {
		fmt.Fprintln(a.stdout, "nothing to do")
	}
	return table.Write(a.stdout)
}
