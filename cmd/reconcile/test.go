package main

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/schemas"
)

// mostUncovered is the number of files with uncovered lines that a table shows.
const mostUncovered = 20

func newTestCmd(a *app) *cobra.Command {
	q := ops.TestRequest{}
	shared := checkFlags{CheckRequest: &q.CheckRequest}
	var noRun, all bool
	var reason string
	cmd := &cobra.Command{
		Use:   "test [PATH…]",
		Short: "Run the tests of the project with the frameworks that it uses, and show what failed",
		Long: `Find the test frameworks of the project (see "reconcile tools"), run its tests, and read what they report. It works in any
folder, with or without a tree. A run without a test, or whose report cannot be read, is unknown and never passed.

With --changed, --base or --related only the tests that are related to files run: their own, those of packages that import them
(by the index), and those that mention them. --diagnose says of each failed test what it is a sign of: it runs the test alone,
and in the commit before the change.

Tests run commands of the project, so that a project has to be allowed once: "reconcile allow", or --yes.

The exit code is 0 if all tests passed, 4 if one failed, and 5 if nobody knows.`,
		Example: "  reconcile test\n" +
			"  reconcile test --changed\n" +
			"  reconcile test --related state/store.go\n" +
			"  reconcile test --session health\n" +
			"  reconcile test --diagnose --base main\n" +
			"  reconcile test --coverage\n" +
			"  reconcile test -o junit > tests.xml\n" +
			"  go test -json ./... | reconcile test --read go-test-json=-",
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Paths = args
			if all && (q.Changed || q.Base != "" || len(q.Related) > 0) {
				return badUsage("--all runs every test; leave out --changed, --base and --related")
			}
			if noRun {
				return a.skipTests(cmd.Context(), q, reason, &shared)
			}
			return a.test(cmd.Context(), q, &shared)
		},
	}
	f := cmd.Flags()
	bindCheck(&shared, f)
	_ = cmd.RegisterFlagCompletionFunc("session", a.completeNamesOf(schemas.SessionKind))
	f.BoolVar(&all, "all", false, "every test (the default)")
	f.StringSliceVar(&q.Related, "related", nil, "only the tests that are related to the `FILE`")
	f.BoolVar(&q.Coverage, "coverage", false, "measure which lines the tests run")
	f.BoolVar(&q.Diagnose, "diagnose", false, "find out whether a failed test is flaky, was broken before, or by which change")
	f.BoolVar(&q.Last, "last", false, "only show the last result again")
	f.BoolVar(&noRun, "no-test-run", false, "run no test, and put on record who decided so; it holds until a file changes")
	f.StringVar(&reason, "reason", "", "`TEXT` that says why, with --no-test-run")
	a.outputFlag(cmd, f, formatTable, formatJSON, formatYAML, formatGitHub, formatJUnit, formatEvidence)
	cmd.AddCommand(newOverrideCmd(a, "skip NAME", "Accept that a test fails, until a file beside it changes",
		"  reconcile test skip TestUpload --reason \"the service is down\"",
		func(arg string) ops.OverrideRequest { return ops.OverrideRequest{Test: arg} }))
	return cmd
}

func (a *app) test(ctx context.Context, q ops.TestRequest, shared *checkFlags) error {
	q.Verify = a.global.output == formatEvidence
	var err error
	if q.Reports, err = a.readReports(shared); err != nil {
		return err
	}
	r, err := trusted(a, &q.CheckRequest, func() (*ops.Testing, error) { return ops.Test(ctx, a.env(), q) })
	if err != nil {
		return err
	}
	err = a.checkReport(r, &r.Checked, func() error { return a.printTesting(r) })
	return cmp.Or(err, shared.exit(&r.Checked))
}

// skipTests puts on record that no test runs, if a reason is given, and shows the result without tests.
func (a *app) skipTests(ctx context.Context, q ops.TestRequest, reason string, shared *checkFlags) error {
	if reason != "" {
		if err := a.overrideCheck(ctx, ops.OverrideRequest{Dir: a.project, NoTests: true, Reason: reason}); err != nil {
			return err
		}
	}
	q.NoRun = true
	return a.test(ctx, q, shared)
}

func (a *app) printTesting(r *ops.Testing) error {
	err := a.printBySession(&r.Checked, func(all []checks.Check) error { return render.FailedTests(a.stdout, a.palette(), all, r.Diagnoses) })
	if err != nil {
		return err
	}
	if r.Undiagnosed > 0 {
		a.note("%s more failed and were not diagnosed", render.Plural(r.Undiagnosed, "test"))
	}
	for _, c := range r.Checks {
		if c.Coverage == nil {
			continue
		}
		fmt.Fprintf(a.stdout, "%s: %.1f %% covered\n", c.Tool, c.Coverage.Percent)
		if err := render.CoverageTable(a.palette(), c.Coverage, mostUncovered).Write(a.stdout); err != nil {
			return err
		}
	}
	n := r.Counts
	what := fmt.Sprintf("%d passed, %d failed, %d skipped", n.Passed, n.Failed, n.Skipped)
	if r.Chosen != nil {
		what += fmt.Sprintf("; only the tests in %s", render.Plural(len(r.Chosen.Files), "file"))
	}
	return a.printChecked(&r.Checked, n.Failed > 0, what)
}
