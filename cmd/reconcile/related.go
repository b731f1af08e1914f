package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
)

const relatedLong = `Show what an object, a file or a symbol is related to: what it calls, imports, contains, defines, references or
documents, and what does so with it; where each edge is stated; and what people stated of it (reconcile create fact). A symbol
is named by its file (state/tree.go:Tree.Entry), by its folder (state/:Tree.Entry), or by a line of it (state/tree.go:120).

--component shows all that it is connected with, however far. --cycles shows what leads back to itself by calls, or by
imports: of all code, or of what is named.`

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
				return badUsage("--depth, --component and --cycles each say how far to go: name one of them")
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
	f.IntVar(&q.Depth, "depth", 1, "go `N` edges far")
	f.IntVarP(&q.Limit, "limit", "k", 100, "print at most `N` nodes, or cycles")
	choiceFlag(cmd, f, &q.Order, "order", "go by `ORDER`: "+strings.Join(ops.Orders, " or ")+" first", ops.Orders)
	f.BoolVar(&q.Component, "component", false, "go as far as edges lead")
	f.BoolVar(&cycles, "cycles", false, "show what leads back to itself")
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
		a.note("nothing leads back to itself")
	}
	if r.More {
		a.note("there are %d more: raise -k, or name a node", r.Rest)
	}
	return render.Cycles(a.stdout, a.palette(), r.Cycles)
}
