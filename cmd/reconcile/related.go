package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/index"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors/graph"
)

// relatedFlags are the flags of related.
type relatedFlags struct {
	walkFlags
	depth, limit      int
	order             string
	component, cycles bool
}

// The orders in which related goes.
const (
	breadthFirst = "breadth"
	depthFirst   = "depth"
)

const relatedLong = `Show what an object, a file or a symbol is related to: what it calls, imports, contains, defines, references or
documents, and what does so with it; where each edge is stated; and what people stated of it (reconcile fact). A symbol
is named by its file (state/tree.go:Tree.Entry), by its folder (state/:Tree.Entry), or by a line of it (state/tree.go:120).

--component shows all that it is connected with, however far. --cycles shows what leads back to itself by calls, or by
imports: of all code, or of what is named.`

func newRelatedCmd(a *app) *cobra.Command {
	o := &relatedFlags{order: breadthFirst}
	cmd := &cobra.Command{
		Use:   "related KIND/NAME|PATH[:SYMBOL|:LINE]",
		Short: "Show what an object, a file or a symbol is related to",
		Long:  relatedLong,
		Example: "  reconcile related state/tree.go:Tree.Entry\n  reconcile related dag/checks --depth 2 --avoid import\n" +
			"  reconcile related --cycles --edge calls",
		Args: func(cmd *cobra.Command, args []string) error {
			least := 1
			if o.cycles {
				least = 0
			}
			return arguments(least, 1, "an object, a file or a symbol")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if deep := cmd.Flags().Changed("depth"); o.component && o.cycles || deep && (o.component || o.cycles) {
				return badUsage("--depth, --component and --cycles each say how far to go: name one of them")
			}
			if o.cycles {
				return a.cycles(cmd.Context(), args, *o)
			}
			return a.related(cmd.Context(), args[0], *o)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := cmd.Flags()
	f.IntVar(&o.depth, "depth", 1, "go `N` edges far")
	f.IntVarP(&o.limit, "limit", "k", 100, "print at most `N` nodes, or cycles")
	orders := []string{breadthFirst, depthFirst}
	f.Var(&choice{value: &o.order, allowed: orders}, "order", "go by `ORDER`: "+strings.Join(orders, " or ")+" first")
	_ = cmd.RegisterFlagCompletionFunc("order", cobra.FixedCompletions(orders, cobra.ShellCompDirectiveNoFileComp))
	f.BoolVar(&o.component, "component", false, "go as far as edges lead")
	f.BoolVar(&o.cycles, "cycles", false, "show what leads back to itself")
	o.bind(cmd)
	return cmd
}

// link is an edge as it is printed, with where it is stated: in a file that somebody wrote, or where the node stands that
// it is found in.
type link struct {
	From   string  `json:"from"`
	Edge   string  `json:"edge"`
	To     string  `json:"to"`
	Weight float32 `json:"weight"`
	Path   string  `json:"path,omitempty"`
	Line   int     `json:"line,omitempty"`
	Stated bool    `json:"stated,omitempty"` // somebody states it; else it is derived
}

// linker makes links of the edges of an index.
type linker struct {
	graph *graph.Graph
	book  *index.Book
}

func (a *app) linker(s *state.Store, x *index.Kept) linker { return linker{x.Graph(), a.book(s)} }

func (k linker) link(e graph.Edge) link {
	l := link{From: e.From, Edge: e.Type.String(), To: e.To, Weight: e.Weight}
	if k.book.States(e.Source) {
		l.Path, l.Stated = e.Source, true
		return l
	}
	for _, id := range []string{e.Source, e.From} {
		if r, ok := k.graph.Find(id); ok {
			n := k.graph.Node(r)
			l.Path, l.Line = n.Path, n.Line
			return l
		}
	}
	l.Path = e.Source
	return l
}

func (l *link) String() string {
	return l.From + " " + strings.ReplaceAll(l.Edge, "_", " ") + " " + l.To
}

// relation is a node that is related, as it is printed.
type relation struct {
	ID    string `json:"id"`
	Kind  string `json:"kind"`
	Path  string `json:"path,omitempty"`
	Line  int    `json:"line,omitempty"`
	Depth int    `json:"depth"`
	Link  link   `json:"link"`
}

// relations is what -o json prints of related.
type relations struct {
	ID      string     `json:"id"`
	Results []relation `json:"results"`
	More    bool       `json:"more"`
	Facts   []vouched  `json:"facts,omitempty"`
}

func (a *app) related(ctx context.Context, what string, o relatedFlags) error {
	f, err := o.filter()
	if err != nil {
		return err
	}
	if o.depth < 1 || o.depth > 20 || o.limit < 1 {
		return badUsage("--depth %d, -k %d: write a depth of 1 to 20, and at least one node", o.depth, o.limit)
	}
	return a.withIndex(ctx, func(s *state.Store, x *index.Kept) error {
		r, err := a.nodeOf(x, what)
		if err != nil {
			return err
		}
		g, k := x.Graph(), a.linker(s, x)
		var visits []graph.Visit
		out := relations{ID: g.ID(r), Results: []relation{}, Facts: vouchedFor(g, r)}
		if o.component {
			f.Direction = graph.Both
			visits, out.More = g.Component(r, f, o.limit+1)
		} else {
			reach := graph.Reach{Filter: f, Depth: o.depth, Max: o.limit + 1, DepthFirst: o.order == depthFirst}
			visits, out.More = g.Walk([]graph.Ref{r}, reach)
		}
		for _, v := range visits {
			if v.Node == r {
				continue
			}
			n := g.Node(v.Node)
			out.Results = append(out.Results, relation{ID: n.ID, Kind: n.Type.String(), Path: n.Path, Line: n.Line,
				Depth: v.Depth, Link: k.between(v.From, v.Node, f)})
		}
		return a.printRelations(&out)
	})
}

// between is the first edge between two nodes that the filter lets through, in its own direction.
func (k linker) between(from, to graph.Ref, f graph.Filter) link {
	var edges []graph.Edge
	if f.Direction != graph.In {
		edges = k.graph.Between(from, to)
	}
	if f.Direction != graph.Out {
		edges = append(edges, k.graph.Between(to, from)...)
	}
	i := slices.IndexFunc(edges, func(e graph.Edge) bool { return len(f.Edges) == 0 || slices.Contains(f.Edges, e.Type) })
	return k.link(edges[i]) // the walk came over it
}

func (a *app) printRelations(out *relations) error {
	if a.global.output != formatTable {
		return a.print(out)
	}
	if len(out.Results) == 0 {
		a.note("nothing is related to it")
	} else {
		t := render.NewTable(a.palette(), "ID", "KIND", "PLACE", "HOW")
		for _, r := range out.Results {
			how := r.Link.String()
			if r.Link.Stated {
				how += " (" + r.Link.Path + ")"
			}
			t.Row(render.Line(r.ID), r.Kind, placeOf(r.Path, r.Line), render.Line(how))
		}
		if err := t.Write(a.stdout); err != nil {
			return err
		}
	}
	for _, v := range out.Facts {
		fmt.Fprintln(a.stdout, render.Line(v.String()))
	}
	if out.More {
		a.note("there is more: raise -k, or name edges with --edge")
	}
	return nil
}

func placeOf(path string, line int) string {
	if line == 0 {
		return render.Line(path)
	}
	return render.Line(fmt.Sprintf("%s:%d", path, line))
}

// cycle is a group of nodes that all lead to each other, as it is printed.
type cycle struct {
	Edge  string   `json:"edge"`
	Nodes []string `json:"nodes"`
	Round []link   `json:"round"` // a shortest way from the first node back to it
}

// cycled are the types of edges whose cycles are looked for, each for itself, unless others are named.
var cycled = []graph.EdgeType{graph.Calls, graph.Imports}

func (a *app) cycles(ctx context.Context, about []string, o relatedFlags) error {
	f, err := o.filter()
	if err != nil {
		return err
	}
	if o.limit < 1 {
		return badUsage("-k %d: write at least 1", o.limit)
	}
	types := cycled
	if len(f.Edges) > 0 {
		types = f.Edges
	}
	return a.withIndex(ctx, func(s *state.Store, x *index.Kept) error {
		k := a.linker(s, x)
		var only []graph.Ref
		for _, word := range about {
			r, err := a.nodeOf(x, word)
			if err != nil {
				return err
			}
			only = append(only, r)
		}
		found := []cycle{}
		for _, t := range types {
			f.Edges = []graph.EdgeType{t}
			for _, group := range k.graph.Cycles(f) {
				if len(only) == 0 || slices.Contains(group, only[0]) {
					found = append(found, k.cycle(group, f))
				}
			}
		}
		return a.printCycles(found, o.limit)
	})
}

func (k linker) cycle(group []graph.Ref, f graph.Filter) cycle {
	c := cycle{Edge: f.Edges[0].String()}
	for _, r := range group {
		c.Nodes = append(c.Nodes, k.graph.ID(r))
	}
	for _, s := range k.graph.Round(group, f).Steps {
		c.Round = append(c.Round, k.link(k.graph.Edge(s)))
	}
	return c
}

func (a *app) printCycles(all []cycle, limit int) error {
	shown := all[:min(len(all), limit)]
	if a.global.output != formatTable {
		return a.print(struct {
			Cycles []cycle `json:"cycles"`
			More   bool    `json:"more"`
		}{shown, len(shown) < len(all)})
	}
	if len(all) == 0 {
		a.note("nothing leads back to itself")
		return nil
	}
	t := render.NewTable(a.palette(), "CYCLE", "NODES", "PLACE", "ROUND")
	for i, c := range shown {
		first, nodes := fmt.Sprintf("%d %s", i+1, c.Edge), fmt.Sprint(len(c.Nodes))
		for _, l := range c.Round {
			t.Row(first, nodes, placeOf(l.Path, l.Line), render.Line(l.String()))
			first, nodes = "", ""
		}
	}
	if len(shown) < len(all) {
		a.note("there are %d more: raise -k, or name a node", len(all)-len(shown))
	}
	return t.Write(a.stdout)
}

// nodeOf is the node that a word names. One that there is not is answered with what was probably meant.
func (a *app) nodeOf(x *index.Kept, word string) (graph.Ref, error) {
	if strings.TrimSpace(word) == "" {
		return 0, badUsage("%q is the name of no node; \"reconcile search\" finds what there is by its words", word)
	}
	for _, find := range []func(string) (graph.Ref, bool){x.Resolve, x.Standing} {
		if r, ok := find(a.treePath(word)); ok {
			return r, nil
		}
	}
	g := x.Graph()
	near := nearestIDs(word, func(yield func(string) bool) {
		for r := range g.All() {
			if !yield(g.ID(r)) {
				return
			}
		}
	}, 3)
	hint := "; \"reconcile search\" finds what there is by its words"
	if len(near) > 0 {
		for i := range near {
			near[i] = render.Line(near[i])
		}
		hint = "; did you mean " + strings.Join(near, ", ") + "?"
	}
	return 0, fmt.Errorf("%s is not in the index%s", render.Line(word), hint)
}
