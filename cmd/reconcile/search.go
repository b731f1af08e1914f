package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
)

const searchLong = `Search everything in the tree: sessions, DAGs and the results of their nodes, questions and answers, observations,
documents by section, and source code by files, functions, methods, types, constants and variables.

Rankings by words (BM25), meaning (vectors) and relations (edges from the results) are merged. An exact match of a name
comes first. Each result has its place; --explain adds why it was found, and the facts about it. The index is updated
first, without reading unchanged files again.

--mode related searches by meaning first and then follows edges, and ranks by alpha * meaning + (1 - alpha) * relation: it
finds related nodes, also in other domains. --alpha, --depth, --edge and --min-score apply to it.

After -- everything is text: "reconcile search -- index" looks for the word.`

func newSearchCmd(a *app) *cobra.Command {
	q := ops.NewSearch()
	cmd := &cobra.Command{
		Use:   "search TEXT…",
		Short: "Find code, documents, decisions and work by word, meaning and relation",
		Long:  searchLong,
		Example: "  reconcile search \"where is the lock of the tree taken\"\n" +
			"  reconcile search retry backoff --domain code --kind function -k 5 --explain\n" +
			"  reconcile search \"how a branch is shared\" --mode related --depth 3 --alpha 0.5",
		Args: arguments(1, -1, "words to look for"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if given := changed(cmd, "alpha", "min-score", "depth", "edge"); len(given) > 0 && q.Mode != ops.RelatedMode {
				return badUsage("%s: only with --mode related", strings.Join(given, ", "))
			}
			q.Text = strings.Join(args, " ")
			return a.search(cmd.Context(), q)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := cmd.Flags()
	namesFlag(cmd, f, &q.Domains, "domain", "only `DOMAIN`: code, history or academic; may be repeated", ops.DomainNames())
	namesFlag(cmd, f, &q.Kinds, "kind", "only nodes of `KIND`: function, method, type, file, doc, session, dag, task, decision…; may be repeated",
		ops.KindNames())
	f.StringSliceVar(&q.Labels, "label", nil, "only nodes with the label `KEY=VALUE`, as issue=42 or lang=go; may be repeated")
	f.IntVarP(&q.Limit, "limit", "k", q.Limit, "print at most `N` results")
	choiceFlag(cmd, f, &q.Mode, "mode", "search by `MODE`: "+strings.Join(ops.SearchModes(), ", "), ops.SearchModes())
	f.BoolVar(&q.Explain, "explain", false, "say why each result was found")
	f.BoolVar(&q.Thorough, "thorough", false, "examine more candidates")
	f.Float32Var(&q.MinSimilarity, "min-similarity", 0, "by meaning, only results with a cosine of `COS` or more: 0 to 1")
	f.Float64Var(&q.Alpha, "alpha", q.Alpha, "with --mode related: the weight of meaning, a `SHARE` above 0 up to 1")
	f.Float64Var(&q.MinScore, "min-score", 0, "with --mode related: only results of this `SCORE` or more, 0 to 1")
	f.IntVar(&q.Depth, "depth", q.Depth, "with --mode related: follow up to `N` edges, 1 to 8")
	namesFlag(cmd, f, &q.Edges, "edge", "with --mode related: only over edges of `TYPE`; may be repeated", ops.EdgeNames())
	cmd.AddCommand(newSearchEvalCmd(a), newIndexCmd(a))
	return cmd
}

func (a *app) search(ctx context.Context, q ops.SearchRequest) error {
	r, rest, err := ops.Search(ctx, a.env(), q)
	if err != nil {
		return err
	}
	return errors.Join(a.printSearch(r, q.Explain), rest.Finish(ctx))
}

func (a *app) printSearch(r *ops.SearchResult, explain bool) error {
	if a.global.output != formatTable {
		return a.print(r)
	}
	err := render.Hits(a.stdout, a.palette(), r.Results, explain)
	if r.Hint != "" {
		a.note("no matches: %s", r.Hint)
	} else if len(r.AlsoExistsIn) > 0 {
		a.note("some of the words are in %s, too", strings.Join(r.AlsoExistsIn, " and "))
	}
	return err
}
