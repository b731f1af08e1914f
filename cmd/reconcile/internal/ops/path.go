package ops

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/vectors/answer"
	"reconcile.dev/reconcile/vectors/graph"
)

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
