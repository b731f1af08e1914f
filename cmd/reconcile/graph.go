package main

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers/graph"
	"reconcile.dev/reconcile/schemas"
)

// graphFormats are the output formats of graph.
var graphFormats = map[string]func(io.Writer, graph.Picture) error{
	"mermaid": render.Mermaid,
	"dot":     render.DOT,
	"svg":     render.SVG,
}

func newGraphCmd(a *app) *cobra.Command {
	format := "mermaid"
	formats := []string{"mermaid", "dot", "svg"}
	cmd := &cobra.Command{
		Use:   "graph dag/NAME|workflow/NAME",
		Short: "Draw a DAG with the states of its nodes, or the steps of a workflow",
		Example: "  reconcile graph dag/checks --format svg > checks.svg\n" +
			"  reconcile graph workflow/feature    # mermaid, which GitHub draws in Markdown",
		Args: arguments(1, 2, "a DAG or workflow"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.graph(cmd.Context(), ops.GraphRequest{Object: strings.Join(args, "/")}, format)
		},
		ValidArgsFunction: a.completeObjects(false, schemas.DAGKind, schemas.WorkflowKind),
	}
	cmd.Flags().Var(&choice{value: &format, allowed: formats}, "format", "draw as `FORMAT`: "+strings.Join(formats, ", "))
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) graph(ctx context.Context, q ops.GraphRequest, format string) error {
	g, err := ops.Graph(ctx, a.env(), q)
	return a.result(g, err, func() error {
		return graphFormats[format](a.stdout, g)
	})
}
