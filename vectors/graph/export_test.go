package graph

// Outgoing are the edges that leave a node, sorted by type and by the id where they lead.
func (g *Graph) Outgoing(r Ref) []Edge {
	var out []Edge
	for _, a := range g.arcs(r) {
		out = append(out, g.edge(a))
	}
	return out
}
