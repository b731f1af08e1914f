package main

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers/checks"
)

func newToolsCmd(a *app) *cobra.Command {
	q := ops.ToolsRequest{}
	cmd := &cobra.Command{
		Use:   "tools [CATEGORY] [PATH…]",
		Short: "Show the tools with which the project checks its code, and why these",
		Long: `Discover the linters, formatters, type checkers, test frameworks and language servers of the project, in any folder, with or
without a tree. A configuration file says so surely (high), a dependency in a manifest well (medium), a file of CI or a program
that is merely installed hardly (low). In a repository with several projects each folder has its own, and the nearest
configuration wins. Nothing is run and nothing is installed.

CATEGORY is linter, formatter, type_checker, test_framework or lsp.`,
		Example: "  reconcile tools\n  reconcile tools linter web\n  reconcile tools --language python -o json",
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 && slices.Contains(checks.Categories(), checks.Category(args[0])) {
				q.Categories, args = []checks.Category{checks.Category(args[0])}, args[1:]
			}
			q.Paths, q.Dir = args, a.project
			return a.tools(cmd.Context(), q)
		},
	}
	cmd.Flags().StringVar(&q.Language, "language", "", "only tools of the `LANGUAGE`")
	cmd.Flags().BoolVar(&q.Refresh, "refresh", false, "discover again, and ask programs again for their versions; else a discovery is used for an hour")
	return cmd
}

func (a *app) tools(ctx context.Context, q ops.ToolsRequest) error {
	r, err := ops.Tools(ctx, a.env(), q)
	return a.result(r, err, func() error {
		if len(r.Tools) == 0 {
			a.note("no tool is known for the files here")
			return nil
		}
		table := render.NewTable(a.palette(), "CATEGORY", "LANGUAGE", "FOLDER", "TOOL", "CONFIDENCE", "INSTALLED", "WHY")
		for _, t := range r.Tools {
			installed := "no"
			if t.Program != "" {
				installed = cmp.Or(t.Version, "yes")
			}
			table.Row(string(t.Category), t.Language, cmp.Or(t.Folder, "."), t.Tool, string(t.Confidence), installed, strings.TrimSpace(t.Why))
		}
		return table.Write(a.stdout)
	})
}
