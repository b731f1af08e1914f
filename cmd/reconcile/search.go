package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/schemas"
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
		a.note("indexed %s that changed and removed %d, in %s", schemas.Count(r.Changed, "input"), r.Gone, r.Took)
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
		err := a.table(len(r.Rankings), "", func(i int) []string {
			by := r.Rankings[i]
			return []string{by.By, fmt.Sprintf("%.4f", by.MRR10), fmt.Sprintf("%.4f", by.Recall10)}
		}, "BY", "MRR@10", "RECALL@10")
		a.printf("\n%s, %s of %s below %s\n", render.GroupedPlural(r.Questions, "question"), render.GroupedPlural(r.Functions, "function"),
			render.GroupedPlural(r.Files, "file"), clean(r.Folder))
		return err
	})
}

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
