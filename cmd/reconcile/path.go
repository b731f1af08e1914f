package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
)

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
	if err != nil {
		return err
	}
	return errors.Join(a.printPaths(r, q.Paths > 1), rest.Finish(ctx))
}

func (a *app) printPaths(r *ops.PathResult, several bool) error {
	if a.global.output != formatTable {
		return a.print(r)
	}
	if r.More && several {
		a.note("there are more paths: raise --paths, or exclude some with --avoid")
	}
	return render.Paths(a.stdout, a.palette(), r.Paths, several)
}
