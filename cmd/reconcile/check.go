package main

import (
	"bufio"
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
		text, err := a.proposal("--read", file)
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
		fmt.Fprintf(a.stdout, "In files that session %s changed:\n", r.Session.Name)
		if err := show(own); err != nil {
			return err
		}
		if slices.ContainsFunc(others, func(c checks.Check) bool { return len(c.Findings)+checks.Count(c.Tests).Failed > 0 }) {
			fmt.Fprintln(a.stdout, "\nElsewhere:")
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
		fmt.Fprintln(a.stdout)
	}
	if err := render.ChecksTable(a.palette(), r.Checks).Write(a.stdout); err != nil {
		return err
	}
	if err := render.Overrides(a.stdout, a.palette(), r.Overridden); err != nil {
		return err
	}
	if len(r.Checks) == 0 && r.Outcome == checks.Unknown {
		what = "no tool of the project checks this; \"reconcile tools\" shows what it has"
	}
	if len(r.Checks) == 0 && r.Outcome == checks.Passed {
		what = "nothing to check"
	}
	if r.Files != nil {
		what += fmt.Sprintf(" (%s changed)", render.Plural(*r.Files, "file"))
	}
	if said := r.MissedText(); said != "" {
		what += "; " + said
	}
	if s := r.Session; s != nil {
		what += fmt.Sprintf("; %d in the %s that session %s changed", s.Found, render.Plural(len(s.Files), "file"), s.Name)
		if s.More > 0 {
			what += fmt.Sprintf(", and %s of files that the records do not name", render.Plural(s.More, "change"))
		}
	}
	_, err := fmt.Fprintf(a.stdout, "%s: %s\n", r.Outcome, what)
	return err
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
			until = "until one of " + render.Plural(len(r.Covers), "file") + " changes"
		}
		a.note("accepted %s: %s", until, r.What)
		return nil
	})
}
