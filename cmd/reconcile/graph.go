package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers/graph"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// graphFormats are the pictures that graph draws.
var graphFormats = map[string]func(io.Writer, graph.Picture) error{
	"mermaid": render.Mermaid,
	"dot":     render.DOT,
	"svg":     render.SVG,
}

// graphOptions are the flags of graph.
type graphOptions struct {
	format string
}

func newGraphCmd(a *app) *cobra.Command {
	o := &graphOptions{format: "mermaid"}
	formats := []string{"mermaid", "dot", "svg"}
	cmd := &cobra.Command{
		Use:   "graph dag/NAME|workflow/NAME",
		Short: "Draw a DAG with the states of its nodes, or the steps of a workflow",
		Example: "  reconcile graph dag/checks --format svg > checks.svg\n" +
			"  reconcile graph workflow/feature    # mermaid, which GitHub draws in Markdown",
		Args: arguments(1, 2, "a DAG or workflow"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.graph(cmd.Context(), strings.Join(args, "/"), *o)
		},
		ValidArgsFunction: a.completeObjects(false, schemas.DAGKind, schemas.WorkflowKind),
	}
	cmd.Flags().Var(&choice{value: &o.format, allowed: formats}, "format", "draw as `FORMAT`: "+strings.Join(formats, ", "))
	_ = cmd.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(formats, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) graph(ctx context.Context, what string, o graphOptions) error {
	s, t, err := a.load(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	e, err := find(t, what)
	if err != nil {
		return err
	}
	if e.Broken() {
		return fmt.Errorf("%s cannot be drawn: %s", e.Ref, e.Problems[0].Error())
	}
	g, err := a.pictureOf(e)
	if err != nil {
		return err
	}
	if a.global.output != formatTable {
		return a.print(g)
	}
	return graphFormats[o.format](a.stdout, g)
}

func (a *app) pictureOf(e *state.Entry) (graph.Picture, error) {
	g := graph.Picture{Title: e.Ref.String()}
	if wf := schemas.SpecAs[*schemas.WorkflowSpec](e.Object); wf != nil {
		for _, s := range wf.Steps {
			g.Nodes = append(g.Nodes, graph.Node{Name: s.ID, Note: s.Agent, Needs: s.Needs})
		}
		return g, nil
	}
	dag := schemas.SpecAs[*schemas.DAGSpec](e.Object)
	if dag == nil {
		return g, badUsage("%s has no graph; dags and workflows have", e.Ref)
	}
	status, _ := e.Status().(*schemas.DAGStatus)
	for _, n := range dag.Nodes {
		node := graph.Node{Name: n.Name, State: schemas.NodePending, Needs: n.Needs}
		if status != nil {
			if s, ok := status.Nodes[n.Name]; ok {
				node.State, node.Note = s.State, took(s)
			}
		}
		g.Nodes = append(g.Nodes, node)
	}
	return g, nil
}

// took is how long the last attempt of a node ran; "" for one that has not ended.
func took(n schemas.NodeStatus) string {
	if n.StartedAt.IsZero() || n.FinishedAt.IsZero() {
		return ""
	}
	return render.Age(n.FinishedAt.Sub(n.StartedAt.Time))
}
