package main

import (
	"context"
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
	return a.indexResult(ctx, r, rest, err, func() error {
		if len(r.Results) == 0 {
			a.note("nothing is related to it")
		}
		err := render.Relations(a.stdout, a.palette(), r.Results, r.Facts)
		if r.More {
			a.note("there is more: raise -k, or name edges with --edge")
		}
		return err
	})
}

func (a *app) cycles(ctx context.Context, q ops.CyclesRequest) error {
	r, rest, err := ops.Cycles(ctx, a.env(), q)
	return a.indexResult(ctx, r, rest, err, func() error {
		if len(r.Cycles) == 0 {
			a.note("no cycles")
		}
		if r.More {
			a.note("there are %d more: raise -k, or name a node", r.Rest)
		}
		return render.Cycles(a.stdout, a.palette(), r.Cycles)
	})
}

// bindWalk binds the flags that limit the edges and nodes of related and path.
func bindWalk(cmd *cobra.Command, w *ops.Walk) {
	f := cmd.Flags()
	namesFlag(cmd, f, &w.Edges, "edge", "only edges of `TYPE`: calls, imports, contains, references…; may be repeated", ops.EdgeNames())
	namesFlag(cmd, f, &w.Domains, "domain", "only nodes of `DOMAIN`: code, history or academic; may be repeated", ops.DomainNames())
	namesFlag(cmd, f, &w.Kinds, "kind", "only nodes of `KIND`: function, method, type, file, doc, task…; may be repeated",
		ops.KindNames())
	all := append(append(ops.EdgeNames(), ops.KindNames()...), ops.DomainNames()...)
	namesFlag(cmd, f, &w.Avoid, "avoid", "exclude edges, kinds or domains of `NAME`; may be repeated", all)
	w.Direction = ops.Directions[0]
	choiceFlag(cmd, f, &w.Direction, "direction", "follow edges in the direction `WAY`: "+strings.Join(ops.Directions, ", "), ops.Directions)
}

const pathLong = `Show the shortest path from one node to another, over edges in both directions, with the type and the source of each edge:
the file and line of its first node, or a file of facts (reconcile create fact).

--paths shows alternatives of up to 16 edges, the shorter ones first. --domain, --kind, --edge, --avoid and --direction
restrict the path, except for its two ends. --through names the domains that it passes, in order. Without TO it ends at a
node of --end, or in the last domain of --through: "--through code,academic,history" leads from code through its documents
to events.`

func newPathCmd(a *app) *cobra.Command {
	q := ops.PathRequest{}
	cmd := &cobra.Command{
		Use:   "path FROM [TO]",
		Short: "Show the shortest paths from one node to another, or to nodes of a kind",
		Long:  pathLong,
		Example: "  reconcile path dag/checks state/tree.go\n" +
			"  reconcile path docs/git.md cmd/reconcile/internal/gitrepo/:Repo.Commit --paths 3 --avoid import\n" +
			"  reconcile path state/tree.go --through code,academic,history",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && len(q.Through)+len(q.EndKinds) > 0 {
				return nil
			}
			return arguments(2, 2, "two objects, files or symbols, or one and --end or --through")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Ends = args
			return a.path(cmd.Context(), q)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := cmd.Flags()
	f.IntVarP(&q.Paths, "paths", "n", 1, "show up to `N` paths")
	f.IntVar(&q.MaxLength, "max-length", 0, "at most `N` edges, up to 16")
	f.Float64Var(&q.MinWeight, "min-weight", 0, "only paths whose product of weights is `W` or more; 0 to 1")
	namesFlag(cmd, f, &q.Through, "through", "pass `DOMAINS` in this order, as code,academic,history", ops.DomainNames())
	namesFlag(cmd, f, &q.EndKinds, "end", "end at a node of `KIND`; may be repeated", ops.KindNames())
	bindWalk(cmd, &q.Walk)
	return cmd
}

func (a *app) path(ctx context.Context, q ops.PathRequest) error {
	r, rest, err := ops.Path(ctx, a.env(), q)
	return a.indexResult(ctx, r, rest, err, func() error {
		if r.More && q.Paths > 1 {
			a.note("there are more paths: raise --paths, or exclude some with --avoid")
		}
		return render.Paths(a.stdout, a.palette(), r.Paths, q.Paths > 1)
	})
}
