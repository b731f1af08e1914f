// Command reconcile drives a tree of specs and statuses to its declared state: it compares specs/ with the observed state,
// does the missing work, and writes the outcome to state/.
//
// This package contains the commands, their flags, their output and the exit codes. A command has its own file, or shares one
// with the commands of its subject: its flags are the fields of an options struct, a constructor binds them, and its run
// method is a method of [app].
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
	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/process"
	"reconcile.dev/reconcile/cmd/reconcile/internal/gocache"
	"reconcile.dev/reconcile/cmd/reconcile/internal/runner"
	"reconcile.dev/reconcile/cmd/reconcile/internal/runner/sandbox"
	"reconcile.dev/reconcile/state/durable"
)

func main() {
	os.Exit(mainRun())
}

// mainRun is main with an exit code, so that deferred calls run.
func mainRun() int {
	sandbox.Main(os.Args)
	runner.Main(os.Args)
	gocache.Main(os.Args)
	a := &app{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		getenv: os.Getenv, ancestry: runner.Ancestry, inherits: runner.InheritsLease, engine: engine.Run, collector: process.NewCollector(os.Getenv), sandbox: sandbox.NewHost(os.Getenv("PATH"), sandbox.Found(os.Getenv)...),
	}
	var err error
	if a.now, err = clock(os.Getenv("RECONCILE_NOW")); err != nil {
		a.complain(err)
		return exitUsage
	}
	return a.main(onDemand(sync.OnceValue(interruptible)), os.Args[1:])
}

// clock returns the clock of the records. RECONCILE_NOW (RFC 3339) stops it, so that runs can be compared byte by byte;
// timers then never expire.
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

// interruptible returns a context that the first SIGINT or SIGTERM ends. After that a SIGINT has its default effect, so that a second
// Ctrl-C ends a program that does not stop. A second SIGTERM has no effect: timeout(1) sends it twice, to the program and to its group.
func interruptible() context.Context {
	ctx, _ := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, func() { signal.Reset(os.Interrupt) })
	return ctx
}

// onDemand is a context that is created at its first use. Catching signals costs the runtime two threads and the time
// of reading hundreds of files. A run without work starts nothing that must be ended in order, so a signal may end it
// by default.
type onDemand func() context.Context

func (c onDemand) Deadline() (time.Time, bool) { return c().Deadline() }
func (c onDemand) Done() <-chan struct{}       { return c().Done() }
func (c onDemand) Err() error                  { return c().Err() }
func (c onDemand) Value(key any) any           { return c().Value(key) }

// main runs one command line and returns the exit code. Errors are printed to stderr as text, whatever the format of
// the results.
func (a *app) main(ctx context.Context, args []string) int {
	a.args = args
	args = guardTexts(args)
	root := rootFor(a, args)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	err = errors.Join(err, unlessGone(a.unwritten))
	var v *verdict
	if err != nil && ctx.Err() != nil && !errors.As(err, &v) && !errors.Is(err, context.Canceled) {
		err = errors.Join(err, ctx.Err())
	}
	err = errors.Join(err, a.closeLog(err))
	a.complain(err)
	return exitCode(err)
}

// complain prints an error, one line for each cause, with advice for errors of the disk.
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
