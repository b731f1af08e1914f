package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
)

const relatedLong = `Show the relations of an object, a file or a symbol: what it calls, imports, contains, defines, references or documents,
and the reverse; the source of each edge; and facts about it (reconcile create fact). A symbol is named by its file
(state/tree.go:Tree.Entry), by its folder (state/:Tree.Entry), or by one of its lines (state/tree.go:120).

--component shows the whole connected component. --cycles shows cycles of calls or imports (strongly connected components):
in all code, or with the named node.`

func newRelatedCmd(a *app) *cobra.Command {
	q := ops.RelatedRequest{Order: ops.Orders[0]}
	cycles := false
	cmd := &cobra.Command{
		Use:   "related KIND/NAME|PATH[:SYMBOL|:LINE]",
		Short: "Show what an object, a file or a symbol is related to",
		Long:  relatedLong,
		Example: "  reconcile related state/tree.go:Tree.Entry\n  reconcile related dag/checks --depth 2 --avoid import\n" +
			"  reconcile related --cycles --edge calls",
		Args: func(cmd *cobra.Command, args []string) error {
			least := 1
			if cycles {
				least = 0
			}
			return arguments(least, 1, "an object, a file or a symbol")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if deep := cmd.Flags().Changed("depth"); q.Component && cycles || deep && (q.Component || cycles) {
				return badUsage("--depth, --component and --cycles exclude each other")
			}
			if !cycles {
				q.Node = args[0]
				return a.related(cmd.Context(), q)
			}
			c := ops.CyclesRequest{Walk: q.Walk, Limit: q.Limit}
			if len(args) > 0 {
				c.Node = &args[0]
			}
			return a.cycles(cmd.Context(), c)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := cmd.Flags()
	f.IntVar(&q.Depth, "depth", 1, "follow up to `N` edges")
	f.IntVarP(&q.Limit, "limit", "k", 100, "print at most `N` nodes, or cycles")
	choiceFlag(cmd, f, &q.Order, "order", "traverse in `ORDER`: "+strings.Join(ops.Orders, " or ")+" first", ops.Orders)
	f.BoolVar(&q.Component, "component", false, "show the whole connected component")
	f.BoolVar(&cycles, "cycles", false, "show cycles")
	bindWalk(cmd, &q.Walk)
	return cmd
}

func (a *app) related(ctx context.Context, q ops.RelatedRequest) error {
	r, rest, err := ops.Related(ctx, a.env(), q)
	if err != nil {
		return err
	}
	return errors.Join(a.printRelated(r), rest.Finish(ctx))
}

func (a *app) printRelated(r *ops.RelatedResult) error {
	if a.global.output != formatTable {
		return a.print(r)
	}
	if len(r.Results) == 0 {
		a.note("nothing is related to it")
	}
	err := render.Relations(a.stdout, a.palette(), r.Results, r.Facts)
	if r.More {
		a.note("there is more: raise -k, or name edges with --edge")
	}
	return err
}

func (a *app) cycles(ctx context.Context, q ops.CyclesRequest) error {
	r, rest, err := ops.Cycles(ctx, a.env(), q)
	if err != nil {
		return err
	}
	return errors.Join(a.printCycles(r), rest.Finish(ctx))
}

func (a *app) printCycles(r *ops.CyclesResult) error {
	if a.global.output != formatTable {
		return a.print(r)
	}
	if len(r.Cycles) == 0 {
		a.note("no cycles")
	}
	if r.More {
		a.note("there are %d more: raise -k, or name a node", r.Rest)
	}
	return render.Cycles(a.stdout, a.palette(), r.Cycles)
}
