package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

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
}

const searchLong = `Search everything that the tree knows: sessions, DAGs and what came of their nodes, questions and answers, what
agents learned, documents by section, and the source code by files, functions, methods and types.

Words (BM25), meaning (vectors) and relations (edges from what was found) are ranked each for itself, and joined. A
result names its place; --explain says why it was found. The index is brought up to date first: what did not change is
not read again.`

func newSearchCmd(a *app) *cobra.Command {
	o := &searchFlags{mode: string(vectors.Hybrid)}
	cmd := &cobra.Command{
		Use:   "search TEXT…",
		Short: "Find code, documents, decisions and work by word, meaning and relation",
		Long:  searchLong,
		Example: "  reconcile search \"where is the lock of the tree taken\"\n" +
			"  reconcile search retry backoff --domain code --kind function -k 5 --explain",
		Args: arguments(1, -1, "words to look for"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.search(cmd.Context(), strings.Join(args, " "), *o)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := cmd.Flags()
	f.StringSliceVar(&o.domains, "domain", nil, "only `DOMAIN`: code, history or academic; may be repeated")
	f.StringSliceVar(&o.kinds, "kind", nil, "only nodes of `KIND`: function, method, type, file, doc, session, dag, task, decision…; may be repeated")
	f.StringSliceVar(&o.labels, "label", nil, "only what has the label `KEY=VALUE`, as issue=42 or lang=go; may be repeated")
	f.IntVarP(&o.limit, "limit", "k", 10, "print at most `N` results")
	modes := []string{string(vectors.Hybrid), string(vectors.Vector), string(vectors.Lexical)}
	f.Var(&choice{value: &o.mode, allowed: modes}, "mode", "search by "+strings.Join(modes, ", "))
	f.BoolVar(&o.explain, "explain", false, "say why each result was found")
	f.BoolVar(&o.thorough, "thorough", false, "look at more candidates")
	_ = cmd.RegisterFlagCompletionFunc("mode", cobra.FixedCompletions(modes, cobra.ShellCompDirectiveNoFileComp))
	cmd.AddCommand(newSearchEvalCmd(a))
	return cmd
}

// query is what the flags ask for.
func (o *searchFlags) query(text string) (vectors.Query, error) {
	const longest, most = 10_000, 1000
	q := vectors.Query{Text: text, Mode: vectors.Mode(o.mode), Labels: o.labels, Limit: o.limit, Thorough: o.thorough}
	switch {
	case strings.TrimSpace(text) == "":
		return q, badUsage("the query is empty: name words to look for")
	case len(text) > longest:
		return q, badUsage("the query has %d bytes, at most %d are allowed: search for the words that matter", len(text), longest)
	case o.limit < 1 || o.limit > most:
		return q, badUsage("-k %d: write 1 to %d", o.limit, most)
	}
	for _, name := range o.domains {
		d, err := graph.ParseDomain(name)
		if err != nil {
			return q, badUsage("--domain: %v", err)
		}
		q.Domains = append(q.Domains, d)
	}
	for _, name := range o.kinds {
		t, err := graph.ParseNodeType(strings.ReplaceAll(name, "-", "_"))
		if err != nil {
			return q, badUsage("--kind: %v", err)
		}
		q.Types = append(q.Types, t)
	}
	for _, l := range o.labels {
		if k, v, ok := strings.Cut(l, "="); !ok || k == "" || v == "" {
			return q, badUsage("--label %q: write KEY=VALUE, as issue=42", l)
		}
	}
	return q, nil
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
			if x.Finish == nil || !errors.Is(w, vectors.ErrNoVectors) {
				a.warnIndex(w)
			}
		}
		return a.printAnswer(text, answer, &o, snippets{store: s, terms: lexical.Terms(text)})
	})
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
	Words   *placed  `json:"words,omitempty"`
	Vector  *placed  `json:"vector,omitempty"`
	Graph   *placed  `json:"graph,omitempty"`
	Via     []link   `json:"via,omitempty"`
	Matched []string `json:"matched,omitempty"`
}

// placed is where a result stands in one of the rankings.
type placed struct {
	Rank  int     `json:"rank"`
	Score float64 `json:"score"`
}

// link is an edge as it is printed.
type link struct {
	From string `json:"from"`
	Edge string `json:"edge"`
	To   string `json:"to"`
}

// searchAnswer is what -o json prints.
type searchAnswer struct {
	Query        string   `json:"query"`
	Status       string   `json:"status"` // found, or no_matches
	Results      []hit    `json:"results"`
	AlsoExistsIn []string `json:"also_exists_in,omitempty"`
	Hint         string   `json:"hint,omitempty"`
}

func (a *app) printAnswer(text string, answer *vectors.Answer, o *searchFlags, s snippets) error {
	out := searchAnswer{Query: text, Status: "found", Results: []hit{}}
	for i := range answer.Results {
		out.Results = append(out.Results, newHit(&answer.Results[i], s))
	}
	for _, d := range answer.AlsoExistsIn {
		out.AlsoExistsIn = append(out.AlsoExistsIn, d.String())
	}
	if len(out.Results) == 0 {
		out.Status = "no_matches"
		out.Hint = "nothing has any of these words; try others"
		if len(out.AlsoExistsIn) > 0 {
			out.Hint = "there is something in " + strings.Join(out.AlsoExistsIn, " and ") + ": search without --domain"
		}
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

func newHit(f *vectors.Found, s snippets) hit {
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
	h.Words, h.Vector, h.Graph = place(f.ByWords), place(f.ByVector), place(f.ByGraph)
	for _, e := range f.Via {
		h.Via = append(h.Via, link{e.From, e.Type.String(), e.To})
	}
	h.Snippet, h.Matched = s.of(&f.Node)
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
	for _, line := range h.Snippet {
		fmt.Fprintf(a.stdout, "      %s\n", render.Cut(render.Line(line), 120))
	}
	if explain {
		fmt.Fprintf(a.stdout, "      %s\n", p.Paint(render.Dim, render.Line(h.why())))
	}
}

// why says by what a result was found.
func (h *hit) why() string {
	var why []string
	if h.Words != nil {
		why = append(why, fmt.Sprintf("words: rank %d, BM25 %.2f (%s)", h.Words.Rank, h.Words.Score, strings.Join(h.Matched, " ")))
	}
	if h.Vector != nil {
		why = append(why, fmt.Sprintf("meaning: rank %d, cosine %.3f", h.Vector.Rank, h.Vector.Score))
	}
	if h.Graph != nil {
		way := ""
		for _, e := range h.Via {
			way += fmt.Sprintf("; %s %s %s", e.From, e.Edge, e.To)
		}
		why = append(why, fmt.Sprintf("relations: rank %d%s", h.Graph.Rank, way))
	}
	return fmt.Sprintf("score %.4f; %s", h.Score, strings.Join(why, "; "))
}

// snippets shows lines of what was found.
type snippets struct {
	store *state.Store
	terms []string
}

// snippetLines is how many lines of a result are printed.
const snippetLines = 3

// of picks the lines of a node that have most of the words, in their order, and says which words these are.
func (s snippets) of(n *graph.Node) (lines, matched []string) {
	text := s.text(n)
	type scored struct{ at, score int }
	var all []scored
	found := map[string]bool{}
	for i, line := range text {
		terms := lexical.Terms(line)
		score := 0
		for _, t := range s.terms {
			if slices.Contains(terms, t) {
				found[t] = true
				score++
			}
		}
		if strings.TrimSpace(line) != "" {
			all = append(all, scored{i, score})
		}
	}
	slices.SortStableFunc(all, func(a, b scored) int { return b.score - a.score })
	all = all[:min(len(all), snippetLines)]
	if len(all) > 0 && all[0].score > 0 { // lines without any of the words are shown only where none has one
		all = slices.DeleteFunc(all, func(l scored) bool { return l.score == 0 })
	}
	slices.SortFunc(all, func(a, b scored) int { return a.at - b.at })
	for _, l := range all {
		lines = append(lines, strings.ReplaceAll(strings.TrimRight(text[l.at], " \t\r"), "\t", "  "))
	}
	return outdented(lines), sortedKeys(found)
}

// outdented drops the space that all lines begin with.
func outdented(lines []string) []string {
	least := -1
	for _, l := range lines {
		if n := len(l) - len(strings.TrimLeft(l, " ")); least < 0 || n < least {
			least = n
		}
	}
	for i := range lines {
		lines[i] = lines[i][least:]
	}
	return lines
}

// text are the lines that a node stands for: of its file, else its name.
func (s snippets) text(n *graph.Node) []string {
	const most, mostLines = 1 << 20, 400
	if n.Line == 0 || n.Path == "" {
		return []string{n.Name}
	}
	data, _, err := s.store.ReadFile(n.Path, most)
	if err != nil {
		return []string{n.Name}
	}
	lines := strings.Split(string(data), "\n")
	from, to := n.Line-1, n.End
	if to < n.Line {
		to = len(lines)
	}
	if from >= len(lines) {
		return []string{n.Name}
	}
	if n.Type.Domain() == graph.Code {
		from = commentedFrom(lines, from)
	}
	return lines[from:min(to, len(lines), from+mostLines)]
}

// comments are what lines of comments begin with.
var comments = []string{"//", "/*", "*", "#", "--"}

// commentedFrom is the line, from 0, at which the comment begins that ends just above a line.
func commentedFrom(lines []string, at int) int {
	isComment := func(line string) bool {
		line = strings.TrimSpace(line)
		return slices.ContainsFunc(comments, func(mark string) bool { return strings.HasPrefix(line, mark) })
	}
	for at > 0 && isComment(lines[at-1]) {
		at--
	}
	return at
}
