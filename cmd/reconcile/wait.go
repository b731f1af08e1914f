package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
)

func newWaitCmd(a *app) *cobra.Command {
	q := &ops.WaitRequest{}
	cmd := &cobra.Command{
		Use:   "wait KIND/NAME…",
		Short: "Wait until objects have a condition or a phase",
		Long: `Wait until all the objects have a condition or a phase. It reads the files that other processes write, and runs nothing
itself. It reports why an object is stalled, and keeps waiting, since the cause may be fixed. At the timeout it exits with 1
and names the objects that it still waits for.`,
		Example: "  reconcile wait dag/checks --timeout 10m\n" +
			"  reconcile wait session/health --for=phase=Completed\n" +
			"  reconcile wait dag/checks --for=condition=Stalled=False",
		Args:              arguments(1, -1, "an object"),
		RunE:              func(cmd *cobra.Command, args []string) error { q.Objects = args; return a.wait(cmd.Context(), *q) },
		ValidArgsFunction: a.completeObjects(false),
	}
	cmd.Flags().StringVar(&q.For, "for", "condition=Ready",
		"what to wait for: `condition=NAME[=VALUE]` or phase=NAME")
	cmd.Flags().DurationVar(&q.Timeout, "timeout", 30*time.Second, "wait at most this `DURATION`, for example 5m; 0 checks once")
	return cmd
}

func (a *app) wait(ctx context.Context, q ops.WaitRequest) error {
	met, err := ops.Wait(ctx, a.env(), q)
	return a.result(met, err, func() error {
		for _, m := range met {
			if !a.global.quiet {
				fmt.Fprintln(a.stdout, m)
			}
		}
		return nil
	})
}
