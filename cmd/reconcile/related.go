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

// relatedFlags are the flags of related and path.
type relatedFlags struct {
	depth, limit int
	edges        []string
	domains      []string
}

func newRelatedCmd(a *app) *cobra.Command {
	o := &relatedFlags{}
	cmd := &cobra.Command{
		Use:   "related KIND/NAME|PATH[:SYMBOL]",
		Short: "Show what an object, a file or a symbol is related to",
		Long: `Show what an object, a file or a symbol is related to: what it calls, imports, contains, defines, references or
documents, and what does so with it. A symbol is named by its file (state/tree.go:Tree.Entry) or by its folder
(state/:Tree.Entry).`,
		Example: "  reconcile related state/tree.go:Tree.Entry\n  reconcile related dag/checks --depth 2",
		Args:    arguments(1, 1, "an object, a file or a symbol"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.related(cmd.Context(), args[0], *o) },
	}
	cmd.Flags().IntVar(&o.depth, "depth", 1, "go `N` edges far")
	cmd.Flags().IntVarP(&o.limit, "limit", "k", 100, "print at most `N` nodes")
	o.bind(cmd)
	return cmd
}

func newPathCmd(a *app) *cobra.Command {
	o := &relatedFlags{}
	cmd := &cobra.Command{
		Use:     "path FROM TO",
		Short:   "Show the shortest way from one thing to another",
		Long:    "Show the shortest way from one thing to another, over edges in both directions, with what each edge says.",
		Example: "  reconcile path dag/checks state/tree.go\n  reconcile path docs/git.md cmd/reconcile/internal/gitrepo/:Repo.Commit",
		Args:    arguments(2, 2, "two objects, files or symbols"),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.path(cmd.Context(), args[0], args[1], *o) },
	}
	o.bind(cmd)
	return cmd
}

func (o *relatedFlags) bind(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&o.edges, "edge", nil, "only over edges of `TYPE`: calls, imports, contains, references…; may be repeated")
	cmd.Flags().StringSliceVar(&o.domains, "domain", nil, "only through `DOMAIN`: code, history or academic; may be repeated")
}

func (o *relatedFlags) filter() (f graph.Filter, err error) {
	for _, name := range o.edges {
		t, err := graph.ParseEdgeType(strings.ReplaceAll(name, "-", "_"))
		if err != nil {
			return f, badUsage("--edge: %v", err)
		}
		f.Edges = append(f.Edges, t)
	}
	for _, name := range o.domains {
		d, err := graph.ParseDomain(name)
		if err != nil {
			return f, badUsage("--domain: %v", err)
		}
		f.Domains = append(f.Domains, d)
	}
	return f, nil
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

func (a *app) related(ctx context.Context, what string, o relatedFlags) error {
	f, err := o.filter()
	if err != nil {
		return err
	}
	if o.depth < 1 || o.depth > 20 || o.limit < 1 {
		return badUsage("--depth %d, -k %d: write a depth of 1 to 20, and at least one node", o.depth, o.limit)
	}
	return a.withIndex(ctx, func(_ *state.Store, x *index.Kept) error {
		r, err := a.nodeOf(x, what)
		if err != nil {
			return err
		}
		g := x.Graph()
		visits, more := g.Walk([]graph.Ref{r}, graph.Reach{Filter: f, Depth: o.depth, Max: o.limit + 1})
		out := []relation{}
		for _, v := range visits {
			if v.Node == r {
				continue
			}
			n := g.Node(v.Node)
			out = append(out, relation{ID: n.ID, Kind: n.Type.String(), Path: n.Path, Line: n.Line, Depth: v.Depth, Link: linkBetween(g, v.From, v.Node, f)})
		}
		return a.printRelations(out, more)
	})
}

// linkBetween is the first edge between two nodes, in its own direction.
func linkBetween(g *graph.Graph, from, to graph.Ref, f graph.Filter) link {
	for _, e := range append(g.Between(from, to), g.Between(to, from)...) {
		if len(f.Edges) == 0 || slices.Contains(f.Edges, e.Type) {
			return link{e.From, e.Type.String(), e.To}
		}
	}
	return link{}
}

func (a *app) printRelations(all []relation, more bool) error {
	if a.global.output != formatTable {
		return a.print(all)
	}
	if len(all) == 0 {
		a.note("nothing is related to it")
		return nil
	}
	t := render.NewTable(a.palette(), "ID", "KIND", "PLACE", "HOW")
	for _, r := range all {
		t.Row(render.Line(r.ID), r.Kind, placeOf(r.Path, r.Line), render.Line(r.Link.String()))
	}
	if more {
		a.note("there is more: raise -k, or name edges with --edge")
	}
	return t.Write(a.stdout)
}

func (l link) String() string {
	if l.Edge == "" {
		return ""
	}
	return l.From + " " + strings.ReplaceAll(l.Edge, "_", " ") + " " + l.To
}

func placeOf(path string, line int) string {
	if line == 0 {
		return render.Line(path)
	}
	return render.Line(fmt.Sprintf("%s:%d", path, line))
}

func (a *app) path(ctx context.Context, from, to string, o relatedFlags) error {
	f, err := o.filter()
	if err != nil {
		return err
	}
	return a.withIndex(ctx, func(_ *state.Store, x *index.Kept) error {
		begin, err := a.nodeOf(x, from)
		if err != nil {
			return err
		}
		end, err := a.nodeOf(x, to)
		if err != nil {
			return err
		}
		g := x.Graph()
		p, ok := g.ShortestPath(begin, end, f)
		if !ok {
			return fmt.Errorf("no way leads from %s to %s", from, to)
		}
		links := []link{}
		for _, s := range p.Steps {
			e := g.Edge(s)
			links = append(links, link{e.From, e.Type.String(), e.To})
		}
		if a.global.output != formatTable {
			return a.print(links)
		}
		for _, l := range links {
			fmt.Fprintln(a.stdout, clean(l.String()))
		}
		return nil
	})
}

// nodeOf is the node that a word names. One that there is not is answered with what was probably meant.
func (a *app) nodeOf(x *index.Kept, word string) (graph.Ref, error) {
	if r, ok := x.Resolve(word); ok {
		return r, nil
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
		hint = "; did you mean " + strings.Join(near, ", ") + "?"
	}
	return 0, fmt.Errorf("%s is not in the index%s", render.Line(word), hint)
}
