package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/schemas"
)

// checkWords are the values of --only, by category.
var checkWords = map[string]checks.Category{"lint": checks.Linter, "format": checks.Formatter, "types": checks.TypeChecker}

func newInspectCmd(a *app) *cobra.Command {
	q := ops.InspectRequest{}
	shared := checkFlags{CheckRequest: &q.CheckRequest}
	var only []string
	var failOn string
	cmd := &cobra.Command{
		Use:   "inspect [PATH…]",
		Short: "Run the linters, formatters and type checkers that the project uses, and show what they find",
		Long: `Find the tools that the project uses (see "reconcile tools"), run those that check files, and read what they print. It works in
any folder, with or without a tree. A check that does not run, ends strangely, or prints what cannot be read is unknown and
never passed; a check that passes has to find the fault in a file with a planted one.

Checks run commands of the project, so that a project has to be allowed once: "reconcile allow", or --yes.

The exit code is 0 if all checks passed, 4 if one failed, and 5 if one is unknown.`,
		Example: "  reconcile inspect\n" +
			"  reconcile inspect --deep                # also races and security holes, which takes its time\n" +
			"  reconcile inspect --changed             # what the next commit changes\n" +
			"  reconcile inspect --base main -o github # annotations for a pull request\n" +
			"  reconcile inspect --session health      # all on its branch, its own files first\n" +
			"  reconcile inspect --only format --fix\n" +
			"  reconcile inspect -o sarif > findings.sarif\n" +
			"  reconcile inspect --read lsp=server.log # what a language server said",
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Paths = args
			for _, word := range only {
				category, ok := checkWords[word]
				if !ok {
					return badUsage("--only %q: write lint, format or types", word)
				}
				q.Only = append(q.Only, category)
			}
			if q.FailOn = checks.Severity(failOn); failOn != "" && !slices.Contains(checks.Severities(), q.FailOn) {
				return badUsage("--fail-on %q: write critical, high, medium, low or info", failOn)
			}
			return a.inspect(cmd.Context(), q, &shared)
		},
	}
	f := cmd.Flags()
	bindCheck(&shared, f)
	_ = cmd.RegisterFlagCompletionFunc("session", a.completeNamesOf(schemas.SessionKind))
	f.StringSliceVar(&only, "only", nil, "only checks of the `KIND` lint, format or types")
	f.StringVar(&failOn, "fail-on", "", "findings less severe than `SEVERITY` do not fail a check (default low)")
	f.BoolVar(&q.Deep, "deep", false, "also look for races, leaks and security holes, with the tools for that")
	f.BoolVar(&q.Fix, "fix", false, "first run the commands that repair files")
	f.BoolVar(&q.Last, "last", false, "only show the last result again")
	a.outputFlag(cmd, f, formatTable, formatJSON, formatYAML, formatSARIF, formatGitHub, formatJUnit, formatEvidence)
	cmd.AddCommand(newOverrideCmd(a, "override ID", "Accept a finding of the last inspection, until its file changes",
		"  reconcile inspect override 3f9a01 --reason \"generated code\"",
		func(arg string) ops.OverrideRequest { return ops.OverrideRequest{Finding: arg} }))
	return cmd
}

func (a *app) inspect(ctx context.Context, q ops.InspectRequest, shared *checkFlags) error {
	q.Verify = a.global.output == formatEvidence
	var err error
	if q.Reports, err = a.readReports(shared); err != nil {
		return err
	}
	r, err := trusted(a, &q.CheckRequest, func() (*ops.Inspection, error) { return ops.Inspect(ctx, a.env(), q) })
	if err != nil {
		return err
	}
	err = a.checkReport(r, &r.Checked, func() error { return a.printInspection(r) })
	return cmp.Or(err, shared.exit(&r.Checked))
}

func (a *app) printInspection(r *ops.Inspection) error {
	if len(r.Repairs) > 0 && !(a.global.quiet && r.Outcome == checks.Passed) {
		if err := render.RepairsTable(a.palette(), r.Repairs).Write(a.stdout); err != nil {
			return err
		}
		fmt.Fprintln(a.stdout)
	}
	err := a.printBySession(&r.Checked, func(all []checks.Check) error { return render.Findings(a.stdout, a.palette(), all) })
	if err != nil {
		return err
	}
	var counts []string
	for _, s := range checks.Severities() {
		if n := r.BySeverity[s]; n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, s))
		}
	}
	what := "no findings"
	if len(counts) > 0 {
		what = render.Plural(r.Findings, "finding") + ": " + strings.Join(counts, ", ")
	}
	return a.printChecked(&r.Checked, r.Findings > 0, what)
}
