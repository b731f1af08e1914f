package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/process"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/checks/formats"
	"reconcile.dev/reconcile/schemas"
)

// formatJUnit and formatEvidence are outputs of checks.
const (
	formatJUnit    = "junit"
	formatEvidence = "evidence"
)

// bindCheck binds the flags that inspect and test share.
func bindCheck(q *checkFlags, f *pflag.FlagSet) {
	f.BoolVar(&q.exitZero, "exit-zero", false, "end with exit code 0 whatever was found, for who reads the output")
	f.BoolVar(&q.Changed, "changed", false, "only files that changed since the last commit, also new ones")
	f.StringVar(&q.Base, "base", "", "only files that changed since the branch left the `REVISION`")
	f.StringVar(&q.Session, "session", "", "everything on the branch of the `SESSION`; what is in files that its nodes changed comes first")
	f.StringSliceVar(&q.Tools, "tool", nil, "only the checks of the tool `NAME`")
	f.DurationVar(&q.Timeout, "timeout", 10*time.Minute, "the time limit of each check, as a `TIME`")
	f.StringSliceVar(&q.AllowUnknown, "allow-unknown", nil, "accept that the checks of the tool `NAME` are unknown, or with inspect that none looks at a file")
	f.StringVar(&q.Sandbox, "sandbox", "", "confine the tools: they write in the project only; `LEVEL` is "+schemas.SandboxLandlock+" or "+schemas.SandboxBwrap)
	f.BoolVar(&q.Refresh, "refresh", false, "discover the tools again")
	f.StringArrayVar(&q.read, "read", nil, "run nothing, and read a report of another program, as `FORMAT=FILE`; - is the standard input; may be repeated")
	f.BoolVarP(&q.Trust, "yes", "y", false, "let the checks of this project run, now and later, without a question")
}

// checkFlags are the flags that inspect and test share.
type checkFlags struct {
	*ops.CheckRequest
	exitZero bool
	read     []string
}

// readReports reads the reports that the flags name.
func (a *app) readReports(q *checkFlags) (all []ops.ReportText, err error) {
	for _, r := range q.read {
		format, file, ok := strings.Cut(r, "=")
		if !ok {
			return nil, badUsage("--read %s: write FORMAT=FILE", r)
		}
		text, err := a.read("--read", file, streamSize)
		if err != nil {
			return nil, err
		}
		all = append(all, ops.ReportText{Format: format, Name: file, Text: text})
	}
	return all, nil
}

// exit is the exit code for a result.
func (q *checkFlags) exit(r *ops.Checked) error {
	if q.exitZero {
		return nil
	}
	return exitWith(int(r.Verdict()))
}

// trusted calls check, and again after a person at a terminal has allowed the commands.
func trusted[T any](a *app, q *ops.CheckRequest, check func() (T, error)) (T, error) {
	q.Dir = a.project
	out, err := check()
	untrusted, ok := errors.AsType[*ops.UntrustedError](err)
	if !ok || !isTerminal(a.stdin) || !isTerminal(a.stderr) {
		return out, err
	}
	fmt.Fprintf(a.stderr, "The checks of %s have never been allowed. They run these commands, which can do anything that you can:\n", clean(untrusted.Root))
	for _, c := range untrusted.Commands {
		fmt.Fprintf(a.stderr, "  %s\n", clean(c))
	}
	if !a.confirmed("Run them, now and later? [y/N] ") {
		return out, badUsage("nothing was run")
	}
	q.Trust = true
	return check()
}

// confirmed asks a person at the terminal, and reports whether the answer is yes.
func (a *app) confirmed(question string) bool {
	fmt.Fprint(a.stderr, question)
	line, _ := bufio.NewReader(a.stdin).ReadString('\n')
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}

// checkReport prints the result of checks: as annotations, SARIF or JUnit, or else as other results.
func (a *app) checkReport(v any, r *ops.Checked, table func() error) error {
	switch a.global.output {
	case formatGitHub:
		return formats.WriteGitHub(a.stdout, "", formats.Of(r.Checks))
	case formatSARIF:
		return formats.WriteSARIF(a.stdout, "", "reconcile", process.ReadBuild().Version, formats.Of(r.Checks))
	case formatEvidence:
		return json.NewEncoder(a.stdout).Encode(r.Evidence())
	case formatJUnit:
		return formats.WriteJUnit(a.stdout, r.Checks)
	}
	return a.result(v, nil, table)
}

// printBySession prints the findings: first those in files that the session of the result changed, then all others.
func (a *app) printBySession(r *ops.Checked, show func(all []checks.Check) error) error {
	if r.Session == nil {
		return show(r.Checks)
	}
	own, others, n := r.BySession()
	if n > 0 {
		a.printf("In files that session %s changed:\n", r.Session.Name)
		if err := show(own); err != nil {
			return err
		}
		if slices.ContainsFunc(others, func(c checks.Check) bool { return len(c.Findings)+checks.Count(c.Tests).Failed > 0 }) {
			a.printf("\nElsewhere:\n")
		}
	}
	return show(others)
}

// printChecked prints the table of checks, what people accepted, and the verdict. apart says that something is above it.
func (a *app) printChecked(r *ops.Checked, apart bool, what string) error {
	if a.global.quiet && r.Outcome == checks.Passed {
		return nil
	}
	if apart {
		a.printf("\n")
	}
	if err := render.ChecksTable(a.palette(), r.Checks).Write(a.stdout); err != nil {
		return err
	}
	if err := render.Overrides(a.stdout, a.palette(), r.Overridden); err != nil {
		return err
	}
	a.printf("%s: %s\n", r.Outcome, r.Summary(what))
	return nil
}

// newOverrideCmd is a command that accepts what a check found.
func newOverrideCmd(a *app, use, short, example string, request func(arg string) ops.OverrideRequest) *cobra.Command {
	var reason, by string
	cmd := &cobra.Command{
		Use: use, Short: short, Example: example, Args: arguments(1, 1, "what is accepted"),
		Long: short + `. The decision is an action in the tree, with who decided and why; each later summary shows it. Only people may
decide that, and it ends with the next change of the files that it covers.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			q := request(args[0])
			q.Dir, q.Reason, q.By = a.project, reason, by
			return a.overrideCheck(cmd.Context(), q)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "`TEXT` that says why")
	cmd.Flags().StringVar(&by, "by", "", "the `NAME` of who decides (default: the account)")
	return cmd
}

func (a *app) overrideCheck(ctx context.Context, q ops.OverrideRequest) error {
	r, err := ops.OverrideCheck(ctx, a.env(), q)
	return a.result(r, err, func() error {
		until := "until a file of the project changes"
		if len(r.Covers) == 1 {
			until = "until " + r.Covers[0] + " changes"
		} else if len(r.Covers) > 1 {
			until = "until one of " + schemas.Count(len(r.Covers), "file") + " changes"
		}
		a.note("accepted %s: %s", until, r.What)
		return nil
	})
}

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
		a.printf("\n")
	}
	err := a.printBySession(&r.Checked, func(all []checks.Check) error { return render.Findings(a.stdout, a.palette(), all) })
	if err != nil {
		return err
	}
	return a.printChecked(&r.Checked, r.Findings > 0, r.Counted())
}

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
		a.note("%s more failed and were not diagnosed", schemas.Count(r.Undiagnosed, "test"))
	}
	for _, c := range r.Checks {
		if c.Coverage == nil {
			continue
		}
		a.printf("%s: %.1f %% covered\n", c.Tool, c.Coverage.Percent)
		if err := render.CoverageTable(a.palette(), c.Coverage, mostUncovered).Write(a.stdout); err != nil {
			return err
		}
	}
	return a.printChecked(&r.Checked, r.Counts.Failed > 0, r.Counted())
}
