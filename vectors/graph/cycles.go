package graph

import (
	"slices"

	"reconcile.dev/reconcile/schemas/topology"
)

// Cycles returns the cycles of the graph: the strongly connected components of two nodes or more, and the nodes with an
// edge to themselves, along the edges that the filter admits; nodes and groups in the order of ids. The filter's
// direction does not matter.
func (g *Graph) Cycles(f Filter) [][]Ref {
	f.Direction = Out
	w := g.walker(f)
	c := topology.NewComponents(int(g.nodePlaces()))
	var groups [][]Ref
	for r := range g.All() {
		if w.enters(uint32(r)) {
			c.Search(uint32(r), w.successor, func(nodes []uint32) {
				if group := w.group(nodes); group != nil {
					groups = append(groups, group)
				}
			})
		}
	}
	slices.SortFunc(groups, func(a, b []Ref) int { return g.byID(uint32(a[0]), uint32(b[0])) })
	return groups
}

// successor is the next node that an edge of the filter leads to.
func (w *graphWalker) successor(u uint32, at *int) (uint32, bool) {
	for l := w.graph.outOf(u); *at < len(l.to); {
		i := *at
		*at++
		if to := l.to[i]; w.edges.has(l.kind[i]) && w.enters(to) {
			return to, true
		}
	}
	return 0, false
}

// Round returns a shortest path around a group of nodes, from the first node of the group back to itself, along
// outgoing edges inside the group that the filter admits. The group is one that [Graph.Cycles] found.
func (g *Graph) Round(group []Ref, f Filter) Path {
	f.Direction = Out
	w := g.walker(f)
	came, from := map[uint32]uint32{}, uint32(group[0])
	for _, r := range group {
		came[uint32(r)] = uint32(r) // from where; itself: not yet
	}
	for front := []uint32{from}; len(front) > 0; {
		var next []uint32
		for _, u := range front {
			closed := false
			w.each(u, func(to, _ uint32) {
				closed = closed || to == from
				if before, ok := came[to]; ok && before == to && to != from {
					came[to] = u
					next = append(next, to)
				}
			})
			if closed {
				return w.path(tracePath(came, from, u))
			}
		}
		front = next
	}
	return w.path([]Ref{group[0]}) // of a group there is a way round
}

// group is a component as [Graph.Cycles] returns it; nil for a node without an edge to itself.
func (w *graphWalker) group(nodes []uint32) []Ref {
	if len(nodes) == 1 {
		if _, _, loop := w.best(nodes[0], nodes[0]); !loop {
			return nil
		}
	}
	group := make([]Ref, len(nodes))
	for i, u := range nodes {
		group[i] = Ref(u)
	}
	slices.SortFunc(group, func(a, b Ref) int { return w.graph.byID(uint32(a), uint32(b)) })
	return group
}
