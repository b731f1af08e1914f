package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
)

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
		RunE: func(cmd *cobra.Command, args []string) error { return a.validate(cmd.Context(), args) },
	}
	a.outputFlag(cmd, cmd.Flags(), formatTable, formatJSON, formatYAML, formatSARIF, formatGitHub)
	return cmd
}

func (a *app) validate(ctx context.Context, paths []string) error {
	v, err := ops.Validate(ctx, a.env(), ops.ValidateRequest{Paths: paths})
	if err != nil {
		return err
	}
	err = a.problemReport(v, v.Problems, func() error { return a.printProblems(v) })
	return cmp.Or(err, exitWith(int(v.Verdict())))
}

func (a *app) printProblems(v ops.Validation) error {
	if err := render.Problems(a.stdout, a.palette(), v.Problems); err != nil {
		return err
	}
	if a.global.quiet {
		return nil
	}
	if len(v.Problems) > 0 {
		fmt.Fprintln(a.stdout)
	}
	verdict := "no problems"
	if len(v.Problems) > 0 {
		verdict = render.Plural(v.Errors, "error") + ", " + render.Plural(v.Warnings, "warning")
	}
	_, err := fmt.Fprintf(a.stdout, "%s checked, %s\n", render.Plural(v.Files, "file"), verdict)
	return err
}
