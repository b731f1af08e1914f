package main

import (
	"bufio"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/schemas"
)

// formatJUnit is an output of checks.
const formatJUnit = "junit"

// bindCheck binds the flags that inspect and test share.
func bindCheck(q *ops.CheckRequest, f *pflag.FlagSet) {
	f.BoolVar(&q.Changed, "changed", false, "only files that changed since the last commit, also new ones")
	f.StringVar(&q.Base, "base", "", "only files that changed since the branch left the `REVISION`")
	f.StringSliceVar(&q.Tools, "tool", nil, "only the checks of the tool `NAME`")
	f.DurationVar(&q.Timeout, "timeout", 10*time.Minute, "the time limit of each check")
	f.StringSliceVar(&q.AllowUnknown, "allow-unknown", nil, "accept that the checks of the tool `NAME` are unknown")
	f.StringVar(&q.Sandbox, "sandbox", "", "confine the tools: they write in the project only; `LEVEL` is "+schemas.SandboxLandlock+" or "+schemas.SandboxBwrap)
	f.BoolVar(&q.Refresh, "refresh", false, "discover the tools again")
	f.BoolVarP(&q.Trust, "yes", "y", false, "let the checks of this project run, now and later, without a question")
}

// trusted calls check, and once more after a person at a terminal has allowed the commands.
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
	fmt.Fprint(a.stderr, "Run them, now and later? [y/N] ")
	line, _ := bufio.NewReader(a.stdin).ReadString('\n')
	if answer := strings.ToLower(strings.TrimSpace(line)); answer != "y" && answer != "yes" {
		return out, badUsage("nothing was run")
	}
	q.Trust = true
	return check()
}
