package main

import (
	"context"
	"fmt"
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
	return a.indexResult(ctx, r, rest, err, func() error {
		err := render.Hits(a.stdout, a.palette(), r.Results, q.Explain)
		if r.Hint != "" {
			a.note("no matches: %s", r.Hint)
		} else if len(r.AlsoExistsIn) > 0 {
			a.note("some of the words are in %s, too", strings.Join(r.AlsoExistsIn, " and "))
		}
		return err
	})
}

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

const searchEvalLong = `Measure how well functions are found by their doc comments, in the Go code below a folder: the first sentence of an
exported function's doc comment, without the function's name, is the question, and is removed from the indexed text; the
function is the answer.

The results are MRR@10 (the mean of 1/rank of the answer) and recall@10 (how often it is among the first ten), for the
search modes words, vectors, and both with relations. The questions are run by the search itself, on an index of the code
without tests and testdata, limited to functions and methods.`

func newSearchEvalCmd(a *app) *cobra.Command {
	q := ops.SearchEvalRequest{}
	cmd := &cobra.Command{
		Use:     "eval [DIR]",
		Short:   "Measure how well functions are found by their doc comments",
		Long:    searchEvalLong,
		Example: "  reconcile search eval\n  reconcile search eval $(go env GOROOT)/src --questions 2000",
		Args:    arguments(0, 1, "a folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Dir = append(args, a.global.dir)[0]
			return a.searchEval(cmd.Context(), q)
		},
	}
	cmd.Flags().IntVar(&q.Questions, "questions", 0, "ask `N` questions, chosen by the names of the functions; 0 asks all")
	return cmd
}

func (a *app) searchEval(ctx context.Context, q ops.SearchEvalRequest) error {
	r, err := ops.SearchEval(ctx, a.env(), q)
	return a.result(r, err, func() error {
		t := render.NewTable(a.palette(), "BY", "MRR@10", "RECALL@10")
		for _, by := range r.Rankings {
			t.Row(by.By, fmt.Sprintf("%.4f", by.MRR10), fmt.Sprintf("%.4f", by.Recall10))
		}
		if err := t.Write(a.stdout); err != nil {
			return err
		}
		fmt.Fprintf(a.stdout, "\n%s, %s of %s below %s\n", render.GroupedPlural(r.Questions, "question"),
			render.GroupedPlural(r.Functions, "function"), render.GroupedPlural(r.Files, "file"), clean(r.Folder))
		return nil
	})
}
