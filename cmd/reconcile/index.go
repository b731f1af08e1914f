package main

import (
	"context"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
)

const indexLong = `Update the index; search, related and path do this automatically. It is derived from the files of the tree and stored in
vectors/, which git ignores: if deleted, it is rebuilt byte for byte.

--verify compares the index with a rebuilt one, and the results of its vector search with an exhaustive search; the exit
code is 1 if they differ.`

func newIndexCmd(a *app) *cobra.Command {
	q := ops.IndexRequest{}
	cmd := &cobra.Command{
		Use:     "index",
		Short:   "Update, rebuild or verify the search index",
		Long:    indexLong,
		Example: "  reconcile search index --stats\n  reconcile search index --rebuild",
		Args:    arguments(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.index(cmd.Context(), q) },
	}
	cmd.Flags().BoolVar(&q.Rebuild, "rebuild", false, "rebuild it from the files")
	cmd.Flags().BoolVar(&q.Stats, "stats", false, "print its statistics")
	cmd.Flags().BoolVar(&q.Verify, "verify", false, "compare it with a rebuilt one, and with an exhaustive search")
	return cmd
}

func (a *app) index(ctx context.Context, q ops.IndexRequest) error {
	q.Stats = q.Stats || a.global.output != formatTable
	r, err := ops.Index(ctx, a.env(), q)
	if v := r.Verified; v != nil {
		a.note("verified: %s; of the 10 nearest of %d vectors %.4f were found, with --thorough %.4f", v.Compared, v.Vectors, v.Found, v.Thorough)
	}
	switch {
	case err != nil:
		return err
	case a.global.output != formatTable:
		return a.print(r.Stats)
	case q.Stats:
		return render.IndexStats(a.stdout, a.palette(), r.Stats)
	}
	inputs, nodes := render.GroupedPlural(r.Inputs, "input"), render.GroupedPlural(r.Nodes, "node")
	switch {
	case r.Rebuilt != "":
		a.note("built the index: %s of %s, in %s (%s)", nodes, inputs, r.Took, r.Rebuilt)
	case r.Changed+r.Gone > 0:
		a.note("indexed %s that changed and removed %d, in %s", render.Plural(r.Changed, "input"), r.Gone, r.Took)
	default:
		a.note("the index is up to date: %s of %s", nodes, inputs)
	}
	return nil
}
