package main

import (
	"fmt"

	"reconcile.dev/reconcile/cmd/reconcile/internal/index"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/vectors/graph"
)

// shape is how the graph of an index hangs together, and what people stated of it.
type shape struct {
	// Cycles are the groups of nodes that lead to each other, by the type of edge; related --cycles shows them.
	Cycles map[string]int `json:"cycles"`
	// Components are the groups of nodes that are connected, Largest the nodes of the largest, Isolated those without edges.
	Components int `json:"components"`
	Largest    int `json:"largest"`
	Isolated   int `json:"isolated"`
	// Hub is the node with the most edges, and HubEdges how many these are.
	Hub      string `json:"hub,omitempty"`
	HubEdges int    `json:"hubEdges,omitempty"`
	// Stated are edges, Provenances reviews and trust, too, Unresolved the conflicts that have not ended.
	Stated      int `json:"stated"`
	Provenances int `json:"provenances"`
	Conflicts   int `json:"conflicts"`
	Unresolved  int `json:"unresolved"`
}

func shapeOf(g *graph.Graph, s graph.Stats, b *index.Book) shape {
	out := shape{Cycles: map[string]int{}, Components: s.Components, Largest: s.Largest, Isolated: s.Isolated,
		Hub: s.Hub, HubEdges: s.MaxDegree, Provenances: s.Provenances, Conflicts: s.Conflicts, Unresolved: s.Unresolved}
	for _, t := range cycled {
		out.Cycles[t.String()] = len(g.Cycles(graph.Filter{Edges: []graph.EdgeType{t}}))
	}
	for source, edges := range s.Stated {
		if b.States(source) {
			out.Stated += edges
		}
	}
	return out
}

func (a *app) printShape(s *shape) {
	fmt.Fprintf(a.stdout, "%s, the largest of %s nodes; %s without edges; cycles: %d of calls, %d of imports\n",
		render.Plural(s.Components, "component"), render.Grouped(s.Largest), render.Grouped(s.Isolated),
		s.Cycles[graph.Calls.String()], s.Cycles[graph.Imports.String()])
	if s.HubEdges > 0 {
		fmt.Fprintf(a.stdout, "the most edges, %s, has %s\n", render.Grouped(s.HubEdges), render.Line(s.Hub))
	}
	if s.Stated+s.Provenances+s.Conflicts > 0 {
		fmt.Fprintf(a.stdout, "stated: %s, %s, %s (%d open)\n", render.Plural(s.Stated, "edge"), render.Plural(s.Provenances, "provenance"),
			render.Plural(s.Conflicts, "conflict"), s.Unresolved)
	}
}
