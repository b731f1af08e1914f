package main

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/index"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors/graph"
)

// pathFlags are the flags of path.
type pathFlags struct {
	walkFlags
	paths, length int
	weight        float64
	through, ends []string
}

// longestPath is how many edges a path has at most that is not simply the shortest.
const longestPath = 16

const pathLong = `Show the shortest way from one thing to another, over edges in both directions, with what each edge says and where it
is stated: in the file and line of the node that it leaves, or in a file that somebody wrote (reconcile fact).

--paths shows alternatives, the shorter ones first, of up to 16 edges. --domain, --kind, --edge, --avoid and --direction
say where a way may lead; the two ends are exempt. --through names the domains that it goes through, in this order.
Without TO it ends at what --end names, or in the last domain of --through: "--through code,academic,history" leads from
code by the documents about it to what happened.`

func newPathCmd(a *app) *cobra.Command {
	o := &pathFlags{}
	cmd := &cobra.Command{
		Use:   "path FROM [TO]",
		Short: "Show the shortest ways from one thing to another, or to things of a kind",
		Long:  pathLong,
		Example: "  reconcile path dag/checks state/tree.go\n" +
			"  reconcile path docs/git.md cmd/reconcile/internal/gitrepo/:Repo.Commit --paths 3 --avoid import\n" +
			"  reconcile path state/tree.go --through code,academic,history",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && len(o.through)+len(o.ends) > 0 {
				return nil
			}
			return arguments(2, 2, "two objects, files or symbols, or one and --end or --through")(cmd, args)
		},
		RunE:              func(cmd *cobra.Command, args []string) error { return a.path(cmd.Context(), args, *o) },
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	f := cmd.Flags()
	f.IntVarP(&o.paths, "paths", "n", 1, "show up to `N` ways")
	f.IntVar(&o.length, "max-length", 0, "go over at most `N` edges, up to 16")
	f.Float64Var(&o.weight, "min-weight", 0, "only ways whose weights come to `W` or more, multiplied; 0 to 1")
	namesFlag(cmd, f, &o.through, "through", "go through `DOMAINS` in this order, as code,academic,history", domainNames())
	namesFlag(cmd, f, &o.ends, "end", "end at a node of `KIND`; may be repeated", kindNames(graph.Domains...))
	o.bind(cmd)
	return cmd
}

// foundPath is a path as it is printed.
type foundPath struct {
	Length int     `json:"length"`
	Weight float64 `json:"weight"`
	// Domains are those that it goes through, each as often as it comes to it.
	Domains []string `json:"domains"`
	Nodes   []string `json:"nodes"`
	Links   []link   `json:"links"`
}

// foundPaths is what -o json prints of path.
type foundPaths struct {
	Paths []foundPath `json:"paths"`
	More  bool        `json:"more"`
}

func (k linker) path(p graph.Path) foundPath {
	g := k.graph
	w := foundPath{Length: len(p.Steps), Weight: math.Round(p.Weight*1e6) / 1e6, Links: []link{}}
	for _, r := range p.Nodes {
		w.Nodes = append(w.Nodes, g.ID(r))
		if d := g.Type(r).Domain().String(); len(w.Domains) == 0 || w.Domains[len(w.Domains)-1] != d {
			w.Domains = append(w.Domains, d)
		}
	}
	for _, s := range p.Steps {
		w.Links = append(w.Links, k.link(g.Edge(s)))
	}
	return w
}

// route is what the flags ask for.
func (o *pathFlags) route() (r graph.Route, err error) {
	const most = 1000
	switch {
	case o.paths < 1 || o.paths > most:
		return r, badUsage("--paths %d: write 1 to %d", o.paths, most)
	case o.length < 0 || o.length > longestPath:
		return r, badUsage("--max-length %d: write 1 to %d; left out, the shortest way may have any length", o.length, longestPath)
	case !(o.weight >= 0 && o.weight <= 1):
		return r, badUsage("--min-weight %v: write 0 to 1", o.weight)
	}
	r = graph.Route{MaxLength: o.length, MaxResults: o.paths, MinWeight: o.weight}
	if r.MaxLength == 0 {
		r.MaxLength = longestPath
	}
	if r.Filter, err = o.filter(); err != nil {
		return r, err
	}
	if r.Through, err = parseNames("--through", o.through, graph.ParseDomain); err != nil {
		return r, err
	}
	r.Ends, err = parseNames("--end", o.ends, graph.ParseNodeType)
	return r, err
}

// simple reports whether no more than the shortest way between two nodes is asked for, whatever its length.
func (o *pathFlags) simple() bool {
	return o.paths == 1 && o.length == 0 && o.weight == 0 && len(o.through)+len(o.ends) == 0
}

func (a *app) path(ctx context.Context, ends []string, o pathFlags) error {
	r, err := o.route()
	if err != nil {
		return err
	}
	return a.withIndex(ctx, func(s *state.Store, x *index.Kept) error {
		if r.From, err = a.nodeOf(x, ends[0]); err != nil {
			return err
		}
		for _, word := range ends[1:] {
			to, err := a.nodeOf(x, word)
			if err != nil {
				return err
			}
			r.To = append(r.To, to)
		}
		k := a.linker(s, x)
		var found []graph.Path
		out := foundPaths{Paths: []foundPath{}}
		if o.simple() {
			if p, ok := k.graph.ShortestPath(r.From, r.To[0], r.Filter); ok {
				found = append(found, p)
			}
		} else if found, out.More, err = k.graph.Paths(r); err != nil {
			return err
		}
		if len(found) == 0 {
			return fmt.Errorf("no such way leads from %s", strings.Join(ends, " to "))
		}
		for _, p := range found {
			out.Paths = append(out.Paths, k.path(p))
		}
		return a.printPaths(&out, &o)
	})
}

func (a *app) printPaths(out *foundPaths, o *pathFlags) error {
	if a.global.output != formatTable {
		return a.print(out)
	}
	columns := []string{"EDGE", "PLACE"}
	if o.paths > 1 {
		columns = append([]string{"WAY"}, columns...)
	}
	t := render.NewTable(a.palette(), columns...)
	for i, w := range out.Paths {
		rows := [][]string{}
		for _, l := range w.Links {
			rows = append(rows, []string{render.Line(l.String()), placeOf(l.Path, l.Line)})
		}
		if len(rows) == 0 {
			rows = append(rows, []string{render.Line(w.Nodes[0]), ""}) // the ends are the same
		}
		for j, row := range rows {
			switch {
			case o.paths == 1:
			case j == 0:
				row = append([]string{fmt.Sprint(i + 1)}, row...)
			default:
				row = append([]string{""}, row...)
			}
			t.Row(row...)
		}
	}
	if out.More && o.paths > 1 {
		a.note("there are more ways: raise --paths, or name what to avoid with --avoid")
	}
	return t.Write(a.stdout)
}
