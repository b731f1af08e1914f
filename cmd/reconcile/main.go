// Command reconcile keeps a tree of specs and statuses true: what is declared under specs/ is compared with what has
// happened, the missing work is done, and the outcome is written to state/.
//
// This package holds the commands, their flags, what they print and the exit codes. One file per command: its flags are the
// fields of an options struct, a constructor binds them, and its run method does the work on an [app].
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine"
	"reconcile.dev/reconcile/cmd/reconcile/internal/runner"
	"reconcile.dev/reconcile/state/durable"
)

func main() {
	os.Exit(mainRun())
}

// mainRun is main with an exit code, so that deferred calls run.
func mainRun() int {
	a := &app{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		getenv: os.Getenv, ancestry: runner.Ancestry, engine: engine.Run,
	}
	var err error
	if a.now, err = clock(os.Getenv("RECONCILE_NOW")); err != nil {
		a.complain(err)
		return exitUsage
	}
	return a.main(onDemand(sync.OnceValue(interruptible)), os.Args[1:])
}

// clock returns the clock of the records. RECONCILE_NOW (RFC 3339) stops it, so that runs can be compared byte by byte;
// what waits for a time then waits for ever.
func clock(stopped string) (func() time.Time, error) {
	if stopped == "" {
		return time.Now, nil
	}
	at, err := time.Parse(time.RFC3339, stopped)
	if err != nil {
		return nil, fmt.Errorf("RECONCILE_NOW=%q is not RFC 3339, for example 2026-02-27T10:00:00Z", stopped)
	}
	return func() time.Time { return at }, nil
}

// interruptible returns a context that the first SIGINT or SIGTERM ends. After that the signals act as they always do,
// so that a second one ends a program that does not come to its end.
func interruptible() context.Context {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx
}

// onDemand is a context that is made when somebody first asks for its end. To catch signals takes the runtime two
// threads and as long as to look at hundreds of files. A run that finds nothing to do begins nothing that would have to
// be ended in order, and need not: a signal ends it as it ends any program.
type onDemand func() context.Context

func (c onDemand) Deadline() (time.Time, bool) { return c().Deadline() }
func (c onDemand) Done() <-chan struct{}       { return c().Done() }
func (c onDemand) Err() error                  { return c().Err() }
func (c onDemand) Value(key any) any           { return c().Value(key) }

// main runs one command line and returns the exit code. What went wrong is printed to stderr, in words, whatever the
// format of the results.
func (a *app) main(ctx context.Context, args []string) int {
	args = guardTexts(args)
	root := rootFor(a, args)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	var v *verdict
	if err != nil && ctx.Err() != nil && !errors.As(err, &v) && !errors.Is(err, context.Canceled) {
		err = errors.Join(err, ctx.Err())
	}
	err = errors.Join(err, a.closeLog(err))
	a.complain(err)
	return exitCode(err)
}

// complain prints what went wrong, one line for each cause, with what to do about it where only the disk is to blame.
func (a *app) complain(err error) {
	for _, e := range leaves(err) {
		var silent *verdict
		if errors.As(e, &silent) {
			continue
		}
		if errors.Is(e, context.Canceled) {
			fmt.Fprintln(a.stderr, "reconcile: interrupted")
			continue
		}
		fmt.Fprintf(a.stderr, "reconcile: %s\n", clean(durable.Advise(e).Error()))
	}
}
