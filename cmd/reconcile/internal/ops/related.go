package ops

import (
	"context"

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
