package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/index"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors"
	"reconcile.dev/reconcile/vectors/graph"
	"reconcile.dev/reconcile/vectors/lexical"
)

// searchFlags are the flags of search.
type searchFlags struct {
	domains, kinds, labels []string
	limit                  int
	mode                   string
	explain                bool
	thorough               bool
	similarity             float32
	expand                 expandFlags
}

// expandFlags are those of --mode related.
type expandFlags struct {
	alpha, score float64
	depth        int
	edges        []string
}

// given are those of them that were set on the command line.
func (o *expandFlags) given(cmd *cobra.Command) []string {
	var out []string
	for _, name := range []string{"alpha", "min-score", "depth", "edge"} {
		if cmd.Flags().Changed(name) {
			out = append(out, "--"+name)
		}
	}
	return out
}

const searchLong = `Search everything that the tree knows: sessions, DAGs and what came of their nodes, questions and answers, what
agents learned, documents by section, and the source code by files, functions, methods, types, constants and variables.

Words (BM25), meaning (vectors) and relations (edges from what was found) are ranked each for itself, and joined. What is
called exactly what you typed comes first. A result names its place; --explain says why it was found, and what people
stated of it. The index is brought up to date first: what did not change is not read again.

--mode related goes by meaning first and then over edges, and ranks by alpha * meaning + (1 - alpha) * relation: it finds
what belongs to what was meant, also in other domains. --alpha, --depth, --edge and --min-score are for it.`

func newSearchCmd(a *app) *cobra.Command {
	o := &searchFlags{mode: string(vectors.Hybrid)}
	cmd := &cobra.Command{
		Use:   "search TEXT…",
		Short: "Find code, documents, decisions and work by word, meaning and relation",
		Long:  searchLong,
		Example: "  reconcile search \"where is the lock of the tree taken\"\n" +
			"  reconcile search retry backoff --domain code --kind function -k 5 --explain\n" +
			"  reconcile search \"how a branch is shared\" --mode related --depth 3 --alpha 0.5",
		Args: arguments(1, -1, "words to look for"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if given := o.expand.given(cmd); len(given) > 0 && o.mode != string(vectors.Related) {
				return badUsage("%s: only --mode related goes by it", strings.Join(given, ", "))
			}
			return a.search(cmd.Context(), strings.Join(args, " "), *o)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := cmd.Flags()
	namesFlag(cmd, f, &o.domains, "domain", "only `DOMAIN`: code, history or academic; may be repeated", domainNames())
	namesFlag(cmd, f, &o.kinds, "kind", "only nodes of `KIND`: function, method, type, file, doc, session, dag, task, decision…; may be repeated",
		kindNames(graph.Domains...))
	f.StringSliceVar(&o.labels, "label", nil, "only what has the label `KEY=VALUE`, as issue=42 or lang=go; may be repeated")
	f.IntVarP(&o.limit, "limit", "k", 10, "print at most `N` results")
	modes := modeNames()
	f.Var(&choice{value: &o.mode, allowed: modes}, "mode", "search by `MODE`: "+strings.Join(modes, ", "))
	f.BoolVar(&o.explain, "explain", false, "say why each result was found")
	f.BoolVar(&o.thorough, "thorough", false, "look at more candidates")
	f.Float32Var(&o.similarity, "min-similarity", 0, "by meaning, only what has a cosine of `COS` or more: 0 to 1")
	f.Float64Var(&o.expand.alpha, "alpha", 0.7, "with --mode related: the `SHARE` of meaning, above 0 up to 1")
	f.Float64Var(&o.expand.score, "min-score", 0, "with --mode related: only results of this `SCORE` or more, 0 to 1")
	f.IntVar(&o.expand.depth, "depth", 2, "with --mode related: go `N` edges far, 1 to 8")
	namesFlag(cmd, f, &o.expand.edges, "edge", "with --mode related: only over edges of `TYPE`; may be repeated", edgeNames())
	_ = cmd.RegisterFlagCompletionFunc("mode", cobra.FixedCompletions(modes, cobra.ShellCompDirectiveNoFileComp))
	cmd.AddCommand(newSearchEvalCmd(a))
	return cmd
}

func modeNames() []string {
	var out []string
	for _, m := range vectors.Modes {
		out = append(out, string(m))
	}
	return out
}

// query is what the flags ask for.
func (o *searchFlags) query(text string) (vectors.Query, error) {
	const longest, most = 10_000, 1000
	q := vectors.Query{Text: text, Mode: vectors.Mode(o.mode), Labels: o.labels, Limit: o.limit, Thorough: o.thorough,
		MinSimilarity: o.similarity}
	switch {
	case strings.TrimSpace(text) == "":
		return q, badUsage("the query is empty: name words to look for")
	case len(text) > longest:
		return q, badUsage("the query has %d bytes, at most %d are allowed: search for the words that matter", len(text), longest)
	case o.limit < 1 || o.limit > most:
		return q, badUsage("-k %d: write 1 to %d", o.limit, most)
	case !(o.similarity >= 0 && o.similarity <= 1):
		return q, badUsage("--min-similarity %v: write 0 to 1", o.similarity)
	case o.similarity > 0 && q.Mode == vectors.Lexical:
		return q, badUsage("--min-similarity is about meaning: --mode lexical does not go by it")
	}
	var err error
	if q.Domains, err = parseNames("--domain", o.domains, graph.ParseDomain); err != nil {
		return q, err
	}
	if q.Types, err = parseNames("--kind", o.kinds, graph.ParseNodeType); err != nil {
		return q, err
	}
	if err := checkKinds(q.Types, q.Domains); err != nil {
		return q, err
	}
	for _, l := range o.labels {
		if k, v, ok := strings.Cut(l, "="); !ok || k == "" || v == "" {
			return q, badUsage("--label %q: write KEY=VALUE, as issue=42", l)
		}
	}
	if q.Mode == vectors.Related {
		q.Expansion, err = o.expand.expansion()
	}
	return q, err
}

// expansion is how --mode related goes on from what it found.
func (o *expandFlags) expansion() (x graph.Expansion, err error) {
	switch {
	case !(o.alpha > 0 && o.alpha <= 1):
		return x, badUsage("--alpha %v: write above 0 up to 1", o.alpha)
	case !(o.score >= 0 && o.score <= 1):
		return x, badUsage("--min-score %v: write 0 to 1", o.score)
	case o.depth < 1 || o.depth > 8:
		return x, badUsage("--depth %d: write 1 to 8", o.depth)
	}
	x = graph.Expansion{Alpha: o.alpha, MinScore: o.score, Depth: o.depth}
	x.Edges, err = parseNames("--edge", o.edges, graph.ParseEdgeType)
	return x, err
}

func (a *app) search(ctx context.Context, text string, o searchFlags) error {
	q, err := o.query(text)
	if err != nil {
		return err
	}
	return a.withIndex(ctx, func(s *state.Store, x *index.Kept) error {
		answer, err := x.Search(ctx, q)
		if err != nil {
			return err
		}
		for _, w := range answer.Warnings {
			a.warnSearch(w, x.Finish != nil)
		}
		return a.printAnswer(text, answer, &o, &snippets{linker: a.linker(s, x), store: s, terms: lexical.Terms(text)})
	})
}

// warnSearch tells what a search did without. That vectors are still being made is no news; that they may not be made is.
func (a *app) warnSearch(w error, unfinished bool) {
	missing := errors.Is(w, vectors.ErrNoVectors)
	switch {
	case missing && a.refused != nil:
		a.warnIndex(a.refused)
	case !missing || !unfinished:
		a.warnIndex(w)
	}
}

// hit is one result as it is printed.
type hit struct {
	ID      string   `json:"id"`
	Kind    string   `json:"kind"`
	Domain  string   `json:"domain"`
	Name    string   `json:"name"`
	Path    string   `json:"path,omitempty"`
	Line    int      `json:"line,omitempty"`
	End     int      `json:"end,omitempty"`
	Labels  []string `json:"labels,omitempty"`
	Score   float64  `json:"score"`
	Snippet []string `json:"snippet,omitempty"`
	Lines   []int    `json:"lines,omitempty"` // where in the file those of the snippet are, from 1
	Words   *placed  `json:"words,omitempty"`
	Vector  *placed  `json:"vector,omitempty"`
	Graph   *placed  `json:"graph,omitempty"`
	Named   bool     `json:"named,omitempty"` // the query is its name
	Via     []link   `json:"via,omitempty"`
	Matched []string `json:"matched,omitempty"`
	// Facts are what people stated of it, with --explain.
	Facts []vouched `json:"facts,omitempty"`
}

// placed is where a result stands in one of the rankings.
type placed struct {
	Rank  int     `json:"rank"`
	Score float64 `json:"score"`
}

// searchAnswer is what -o json prints.
type searchAnswer struct {
	Query        string   `json:"query"`
	Status       string   `json:"status"` // found, or no_matches
	Results      []hit    `json:"results"`
	AlsoExistsIn []string `json:"also_exists_in,omitempty"`
	Hint         string   `json:"hint,omitempty"`
}

func (a *app) printAnswer(text string, answer *vectors.Answer, o *searchFlags, s *snippets) error {
	out := searchAnswer{Query: text, Status: "found", Results: []hit{}}
	for i := range answer.Results {
		h := newHit(&answer.Results[i], s)
		if r, ok := s.graph.Find(h.ID); ok && o.explain {
			h.Facts = vouchedFor(s.graph, r)
		}
		out.Results = append(out.Results, h)
	}
	for _, d := range answer.AlsoExistsIn {
		out.AlsoExistsIn = append(out.AlsoExistsIn, d.String())
	}
	if len(out.Results) == 0 {
		out.Status, out.Hint = "no_matches", o.hint(text, answer.NoMatches, out.AlsoExistsIn)
	}
	if a.global.output != formatTable {
		return a.print(out)
	}
	for i := range out.Results {
		a.printHit(i+1, &out.Results[i], o.explain)
	}
	if out.Hint != "" {
		a.note("no matches: %s", out.Hint)
	} else if len(out.AlsoExistsIn) > 0 {
		a.note("some of the words are in %s, too", strings.Join(out.AlsoExistsIn, " and "))
	}
	return nil
}

// hint says what to do where nothing was found for a text. unknown is whether what was searched has none of the words.
func (o *searchFlags) hint(text string, unknown bool, elsewhere []string) string {
	if unknown && len(lexical.Terms(text)) == 0 {
		return nothingToFind(text)
	}
	if len(elsewhere) > 0 {
		return "there is something in " + strings.Join(elsewhere, " and ") + ": search without --domain"
	}
	var narrow []string
	for _, f := range []struct {
		name string
		used bool
	}{
		{"--kind", len(o.kinds) > 0}, {"--label", len(o.labels) > 0}, {"--min-similarity", o.similarity > 0},
		{"--min-score", o.expand.score > 0},
	} {
		if f.used {
			narrow = append(narrow, f.name)
		}
	}
	if unknown || len(narrow) == 0 {
		return "nothing has any of these words; try others"
	}
	return "something has the words, but not with these filters: search without " + strings.Join(narrow, ", ")
}

// nothingToFind says why nothing is found by a text that has no terms.
func nothingToFind(text string) string {
	if strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsNumber(r) }) {
		return "stop words, such as a, the and what, are too common to be searched for; add words that say what it is about"
	}
	return "there are no words in this, and signs are not searched: name what it is about"
}

func newHit(f *vectors.Found, s *snippets) hit {
	h := hit{
		ID: f.ID, Kind: f.Type.String(), Domain: f.Type.Domain().String(), Name: f.Name, Path: f.Path, Line: f.Line, End: f.End,
		Labels: f.Labels, Score: f.Score,
	}
	place := func(p vectors.Place) *placed {
		if p.Rank == 0 {
			return nil
		}
		return &placed{p.Rank, p.Score}
	}
	h.Words, h.Vector, h.Graph, h.Named = place(f.ByWords), place(f.ByVector), place(f.ByGraph), f.Named > 0
	for _, e := range f.Via {
		h.Via = append(h.Via, s.link(e))
	}
	h.Snippet, h.Lines, h.Matched = s.of(&f.Node)
	return h
}

// printHit prints a result: what and where it is, lines of it, and with explain why it is here.
func (a *app) printHit(rank int, h *hit, explain bool) {
	p := a.palette()
	at := h.Path
	if h.Line > 0 {
		at = fmt.Sprintf("%s:%d", h.Path, h.Line)
	}
	// Names of files may hold anything, also line ends.
	id, what := render.Line(h.ID), render.Line(h.Kind+"  "+at)
	fmt.Fprintf(a.stdout, "%2d  %s  %s\n", rank, p.Paint(render.Bold, id), p.Paint(render.Dim, what))
	for i, line := range h.Snippet {
		number := ""
		if i < len(h.Lines) {
			number = fmt.Sprint(h.Lines[i])
		}
		fmt.Fprintf(a.stdout, "%s %s\n", p.Paint(render.Dim, fmt.Sprintf("%5s", number)), render.Cut(render.Line(line), snippetWidth))
	}
	if explain {
		fmt.Fprintf(a.stdout, "      %s\n", p.Paint(render.Dim, render.Line(h.why())))
		for _, f := range h.Facts {
			fmt.Fprintf(a.stdout, "      %s\n", p.Paint(render.Dim, render.Line(f.String())))
		}
	}
}

// why says by what a result was found.
func (h *hit) why() string {
	var why []string
	if h.Named {
		why = append(why, "it is called so")
	}
	if h.Words != nil {
		why = append(why, fmt.Sprintf("words: rank %d, BM25 %.2f (%s)", h.Words.Rank, h.Words.Score, strings.Join(h.Matched, " ")))
	}
	if h.Vector != nil {
		why = append(why, fmt.Sprintf("meaning: rank %d, cosine %.3f", h.Vector.Rank, h.Vector.Score))
	}
	if h.Graph != nil {
		way := ""
		for _, e := range h.Via {
			way += "; " + e.String()
			if e.Stated {
				way += " (" + e.Path + ")"
			}
		}
		why = append(why, fmt.Sprintf("relations: rank %d%s", h.Graph.Rank, way))
	}
	return fmt.Sprintf("score %.4f; %s", h.Score, strings.Join(why, "; "))
}
