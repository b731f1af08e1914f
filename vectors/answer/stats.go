package answer

import "reconcile.dev/reconcile/vectors/graph"

// Stats are figures of an index.
type Stats struct {
	Nodes   int `json:"nodes"`
	Edges   int `json:"edges"`
	Inputs  int `json:"inputs"`
	Changed int `json:"changed"` // nodes in the delta
	Large   int `json:"large"`   // files that are left out because they are larger than index.maxFileSize
	Binary  int `json:"binary"`  // files that are not indexed because they are not text
	// Unreadable are files and folders that are left out because they cannot be read.
	Unreadable int    `json:"unreadable"`
	Model      string `json:"model,omitempty"`
	// M and EfConstruction are the parameters of its links, EfSearch and EfThorough how many candidates searches keep.
	M              int            `json:"m"`
	EfConstruction int            `json:"efConstruction"`
	EfSearch       int            `json:"efSearch"`
	EfThorough     int            `json:"efThorough"`
	Tools          string         `json:"tools,omitempty"`
	Types          map[string]int `json:"types"`
	EdgesBy        map[string]int `json:"edgesByType"`
	Domains        map[string]int `json:"domains"`
	// Cycles are the strongly connected components by the type of edge.
	Cycles map[string]int `json:"cycles"`
	// Components are the connected components, Largest the nodes of the largest, Isolated those without edges.
	Components int `json:"components"`
	Largest    int `json:"largest"`
	Isolated   int `json:"isolated"`
	// Hub is the node with the most edges, HubEdges their number.
	Hub      string `json:"hub,omitempty"`
	HubEdges int    `json:"hubEdges,omitempty"`
	// Stated counts edges, Provenances reviews and trust, too, Unresolved the open conflicts.
	Stated      int `json:"stated"`
	Provenances int `json:"provenances"`
	Conflicts   int `json:"conflicts"`
	Unresolved  int `json:"unresolved"`
}

// CycleEdges are the types of edges whose cycles are searched by default, each separately.
var CycleEdges = []graph.EdgeType{graph.Calls, graph.Imports}

// Stats names the statistics of the graph: the numbers of nodes by type and domain, of edges and cycles by type, of
// components and isolated nodes, and the hub. The other fields are zero.
func (x Index) Stats() Stats {
	s := x.Graph.Stats()
	out := Stats{
		Nodes: s.Nodes, Edges: s.Edges, Types: map[string]int{}, EdgesBy: map[string]int{}, Domains: map[string]int{},
		Cycles: map[string]int{}, Components: s.Components, Largest: s.Largest, Isolated: s.Isolated, Hub: s.Hub,
		HubEdges: s.MaxDegree, Provenances: s.Provenances, Conflicts: s.Conflicts, Unresolved: s.Unresolved,
	}
	for t, n := range s.NodesByType {
		out.Types[t.String()] = n
	}
	for d, n := range s.NodesByDomain {
		out.Domains[d.String()] = n
	}
	for t, n := range s.EdgesByType {
		out.EdgesBy[t.String()] = n
	}
	for _, t := range CycleEdges {
		out.Cycles[t.String()] = len(x.Graph.Cycles(graph.Filter{Edges: []graph.EdgeType{t}}))
	}
	for source, edges := range s.Stated {
		if x.Stated(source) {
			out.Stated += edges
		}
	}
	return out
}
