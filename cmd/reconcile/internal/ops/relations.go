package ops

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/vectors/answer"
	"reconcile.dev/reconcile/vectors/graph"
)

// Orders are the orders in which related nodes are visited.
var Orders = []string{"breadth", "depth"}

// RelatedRequest requests the nodes that are related to a node. A node is named kind/name, path, path:symbol or
// path:line.
type RelatedRequest struct {
	Walk
	Node      string
	Depth     int    // maximum number of edges; not with Component
	Limit     int    // of the nodes
	Order     string // one of Orders
	Component bool   // the whole connected component
}

// RelatedResult are the nodes that are related to one, and the facts about it.
type RelatedResult struct {
	ID      string            `json:"id"`
	Results []answer.Relation `json:"results"`
	More    bool              `json:"more"`
	Facts   []answer.Fact     `json:"facts,omitempty"`
}

// Related walks the graph of the index from the node of a RelatedRequest, and returns the nodes that are related to it,
// up to a depth.
func Related(ctx context.Context, env Env, q RelatedRequest) (*RelatedResult, *Pending, error) {
	const deepest = 20
	f, err := q.filter()
	switch {
	case err != nil:
		return nil, nil, err
	case q.Depth < 1 || q.Depth > deepest:
		return nil, nil, badField("depth", " %d: write a depth of 1 to %d", q.Depth, deepest)
	case q.Limit < 1:
		return nil, nil, badField("k", " %d: write at least 1", q.Limit)
	}
	return withIndex(ctx, env, func(x *indexed) (*RelatedResult, error) {
		r, err := x.node(q.Node)
		if err != nil {
			return nil, err
		}
		var visits []graph.Visit
		out := &RelatedResult{ID: x.Graph.ID(r), Results: []answer.Relation{}, Facts: x.Facts(r)}
		if q.Component {
			f.Direction = graph.Both
			visits, out.More = x.Graph.Component(r, f, q.Limit+1)
		} else {
			reach := graph.Reach{Filter: f, Depth: q.Depth, Max: q.Limit + 1, DepthFirst: q.Order == Orders[1]}
			visits, out.More = x.Graph.Walk([]graph.Ref{r}, reach)
		}
		for _, v := range visits {
			if v.Node != r {
				out.Results = append(out.Results, x.Relation(v, f))
			}
		}
		return out, nil
	})
}

// CyclesRequest requests cycles over edges of one type: those of the walk, or else calls and imports.
type CyclesRequest struct {
	Walk
	Node  *string // only cycles with this node; nil: all
	Limit int
}

// CyclesResult are strongly connected components.
type CyclesResult struct {
	Cycles []answer.Cycle `json:"cycles"`
	More   bool           `json:"more"`
	Rest   int            `json:"-"` // the number of omitted ones
}

// Walk limits a relation or a path to edges and nodes, by their names; none means all.
type Walk struct {
	Edges, Domains, Kinds []string
	Avoid                 []string // edges, domains or kinds
	Direction             string   // one of Directions; "" is both
}

// Directions are the directions in which edges are followed.
var Directions = []string{"both", "out", "in"}

func (w *Walk) filter() (f graph.Filter, err error) {
	switch w.Direction {
	case "out":
		f.Direction = graph.Out
	case "in":
		f.Direction = graph.In
	case "", "both":
	default:
		return f, badField("direction", " %q: write one of %s", w.Direction, strings.Join(Directions, ", "))
	}
	if f.Edges, err = parseNames("edge", w.Edges, graph.ParseEdgeType); err != nil {
		return f, err
	}
	if f.Domains, err = parseNames("domain", w.Domains, graph.ParseDomain); err != nil {
		return f, err
	}
	if f.Types, err = parseNames("kind", w.Kinds, graph.ParseNodeType); err != nil {
		return f, err
	}
	for _, name := range w.Avoid {
		if err := avoid(&f, strings.ReplaceAll(name, "-", "_")); err != nil {
			return f, err
		}
	}
	return f, checkKinds(f.Types, f.Domains)
}

// parseNames parses the values of a field; a dash is read as an underscore.
func parseNames[T any](field string, names []string, parse func(string) (T, error)) ([]T, error) {
	var out []T
	for _, name := range names {
		t, err := parse(strings.ReplaceAll(name, "-", "_"))
		if err != nil {
			return nil, badField(field, ": %v", err)
		}
		out = append(out, t)
	}
	return out, nil
}

// checkKinds returns an error if none of the kinds belongs to a requested domain.
func checkKinds(kinds []graph.NodeType, domains []graph.Domain) error {
	there := func(t graph.NodeType) bool { return slices.Contains(domains, t.Domain()) }
	if len(kinds) == 0 || len(domains) == 0 || slices.ContainsFunc(kinds, there) {
		return nil
	}
	return badRequest("kind %s is of the domain %s, which is not asked for: only %s", kinds[0], kinds[0].Domain(),
		strings.Join(namesOf(domains), ", "))
}

// avoid removes the edges, kind or domain with a name from a filter.
func avoid(f *graph.Filter, name string) error {
	left := 0
	if t, err := graph.ParseEdgeType(name); err == nil {
		f.Edges = without(f.Edges, graph.EdgeTypes(), t)
		left = len(f.Edges)
	} else if t, err := graph.ParseNodeType(name); err == nil {
		f.Types = without(f.Types, nodeTypes(), t)
		left = len(f.Types)
	} else if d, err := graph.ParseDomain(name); err == nil {
		f.Domains = without(f.Domains, graph.Domains, d)
		left = len(f.Domains)
	} else {
		return badField("avoid", ": %q is no type of edge (%s), no kind (%s) and no domain (%s)", name,
			strings.Join(EdgeNames(), ", "), strings.Join(KindNames(), ", "), strings.Join(DomainNames(), ", "))
	}
	if left == 0 {
		return badField("avoid", " %s leaves nothing of what the other flags ask for", name)
	}
	return nil
}

// without returns some, or all if some is empty, without one.
func without[T comparable](some, all []T, one T) []T {
	if len(some) == 0 {
		some = all
	}
	return slices.DeleteFunc(slices.Clone(some), func(t T) bool { return t == one })
}

func nodeTypes() []graph.NodeType {
	var all []graph.NodeType
	for _, d := range graph.Domains {
		all = append(all, d.Types()...)
	}
	return all
}

// EdgeNames returns the names of the edge types that are valid in a Walk.
func EdgeNames() []string { return namesOf(graph.EdgeTypes()) }

// DomainNames returns the names of the domains that are valid in a Walk.
func DomainNames() []string { return namesOf(graph.Domains) }

// KindNames returns the names of the node types, the kinds that are valid in a Walk.
func KindNames() []string { return namesOf(nodeTypes()) }

// PathRequest requests paths from one node to another, to nodes of a kind, or to the last domain of Through.
type PathRequest struct {
	Walk
	Ends      []string // the start, and the end unless Kinds or Through define it
	Paths     int      // maximum number of paths
	MaxLength int      // in edges; 0: 16, or unlimited for a single shortest path
	MinWeight float64  // minimum product of the weights
	Through   []string // domains, in order
	EndKinds  []string
}

// PathResult are paths, the shorter ones first.
type PathResult struct {
	Paths []answer.Path `json:"paths"`
	More  bool          `json:"more"`
}

// Path finds paths in the graph of the index from one node to other nodes, through the domains and edges of a
// PathRequest.
func Path(ctx context.Context, env Env, q PathRequest) (*PathResult, *Pending, error) {
	r, err := q.route()
	if err != nil {
		return nil, nil, err
	}
	return withIndex(ctx, env, func(x *indexed) (*PathResult, error) {
		if r.From, err = x.node(q.Ends[0]); err != nil {
			return nil, err
		}
		for _, word := range q.Ends[1:] {
			to, err := x.node(word)
			if err != nil {
				return nil, err
			}
			r.To = append(r.To, to)
		}
		var ways []graph.Path
		out := &PathResult{Paths: []answer.Path{}}
		if q.shortestOnly() {
			if p, ok := x.Graph.ShortestPath(r.From, r.To[0], r.Filter); ok {
				ways = append(ways, p)
			}
		} else if ways, out.More, err = x.Graph.Paths(r); err != nil {
			return nil, err
		}
		if len(ways) == 0 {
			return nil, fmt.Errorf("no such way leads from %s", strings.Join(q.Ends, " to "))
		}
		for _, p := range ways {
			out.Paths = append(out.Paths, x.Path(p))
		}
		return out, nil
	})
}

// route checks a request.
func (q *PathRequest) route() (r graph.Route, err error) {
	const most, longest = 1000, 16
	switch {
	case len(q.Ends) == 0 || len(q.Ends) > 2 || len(q.Ends) == 1 && len(q.Through)+len(q.EndKinds) == 0:
		return r, badRequest("a path has two ends; name both, or one and where it leads to")
	case q.Paths < 1 || q.Paths > most:
		return r, badField("paths", " %d: write 1 to %d", q.Paths, most)
	case q.MaxLength < 0 || q.MaxLength > longest:
		return r, badField("max-length", " %d: write 1 to %d; left out, the shortest way may have any length", q.MaxLength, longest)
	case !(q.MinWeight >= 0 && q.MinWeight <= 1):
		return r, badField("min-weight", " %v: write 0 to 1", q.MinWeight)
	}
	r = graph.Route{MaxLength: q.MaxLength, MaxResults: q.Paths, MinWeight: q.MinWeight}
	if r.MaxLength == 0 {
		r.MaxLength = longest
	}
	if r.Filter, err = q.filter(); err != nil {
		return r, err
	}
	if r.Through, err = parseNames("through", q.Through, graph.ParseDomain); err != nil {
		return r, err
	}
	r.Ends, err = parseNames("end", q.EndKinds, graph.ParseNodeType)
	return r, err
}

// shortestOnly reports whether only the shortest path between two nodes is requested, of any length.
func (q *PathRequest) shortestOnly() bool {
	return q.Paths == 1 && q.MaxLength == 0 && q.MinWeight == 0 && len(q.Through)+len(q.EndKinds) == 0
}

// Cycles finds the cycles of the graph over edges of one type: strongly connected components with more than one node,
// and nodes with an edge to themselves.
func Cycles(ctx context.Context, env Env, q CyclesRequest) (*CyclesResult, *Pending, error) {
	f, err := q.filter()
	if err != nil {
		return nil, nil, err
	}
	if q.Limit < 1 {
		return nil, nil, badField("k", " %d: write at least 1", q.Limit)
	}
	types := answer.CycleEdges
	if len(f.Edges) > 0 {
		types = f.Edges
	}
	return withIndex(ctx, env, func(x *indexed) (*CyclesResult, error) {
		var only graph.Ref
		if q.Node != nil {
			if only, err = x.node(*q.Node); err != nil {
				return nil, err
			}
		}
		all := []answer.Cycle{}
		for _, t := range types {
			f.Edges = []graph.EdgeType{t}
			for _, group := range x.Graph.Cycles(f) {
				if q.Node == nil || slices.Contains(group, only) {
					all = append(all, x.Cycle(group, f))
				}
			}
		}
		shown := all[:min(len(all), q.Limit)]
		return &CyclesResult{Cycles: shown, More: len(shown) < len(all), Rest: len(all) - len(shown)}, nil
	})
}
