package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
)

func newDescribeCmd(a *app) *cobra.Command {
	q := &ops.DescribeRequest{}
	cmd := &cobra.Command{
		Use:   "describe KIND/NAME",
		Short: "Tell all about one object: why it is not ready, and when it is looked at again",
		Example: "  reconcile describe dag/checks\n" +
			"  reconcile describe session/health -o json",
		Args: arguments(1, 2, "an object"),
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Object = strings.Join(args, "/")
			return a.describe(cmd.Context(), *q)
		},
		ValidArgsFunction: a.completeObjects(false),
	}
	a.atFlag(cmd, &q.At)
	return cmd
}

func (a *app) describe(ctx context.Context, q ops.DescribeRequest) error {
	d, err := ops.Describe(ctx, a.env(), q)
	if err != nil {
		return err
	}
	if a.global.output != formatTable {
		return a.print(d)
	}
	a.noteInterrupted(d.Entry.Ref, d.Interrupted)
	return render.Describe(a.stdout, a.palette(), render.Description{Entry: d.Entry, Path: d.Path, Why: d.Why, Referrers: d.Referrers,
		Missing: d.OutputsMissing, Changed: d.OutputsChanged}, a.now())
}
