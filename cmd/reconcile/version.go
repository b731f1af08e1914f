package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
)

func newVersionCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version of reconcile",
		Example: "  reconcile version -o json",
		Args:    arguments(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.version(cmd.Context()) },
	}
}

func (a *app) version(ctx context.Context) error {
	v := ops.Version(ctx, a.env())
	if a.global.output != formatTable {
		return a.print(v)
	}
	line := "reconcile " + v.Version
	if v.Revision != "" {
		line += " (" + v.Revision + ")"
	}
	if v.Modified {
		line += " with local changes"
	}
	_, err := fmt.Fprintf(a.stdout, "%s, %s, %s\n", line, v.Go, v.Platform)
	return err
}
