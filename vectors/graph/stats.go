package graph

// Stats are the numbers of a graph.
type Stats struct {
	Nodes, Edges  int
	NodesByType   map[NodeType]int
	NodesByDomain map[Domain]int
	EdgesByType   map[EdgeType]int
	// Stated are the edges that are stated, by the path of the file that states them.
	Stated                map[string]int
	Provenances           int
	Conflicts, Unresolved int
	// Isolated nodes have no edges. MaxDegree is how many edges the node Hub has; degrees count both directions.
	Isolated, MaxDegree int
	Hub                 string
	// Components are the groups of connected nodes, isolated ones too, Largest the nodes of the largest.
	Components, Largest int
}

// Stats computes the statistics of the graph: its nodes by type and domain, its edges by type, its components and the
// largest of them, its isolated nodes, its hub, its provenances and its conflicts. It takes as long as to read the
// graph once.
func (g *Graph) Stats() Stats {
	s := Stats{Nodes: g.nodeCount, Edges: g.edgeCount, NodesByType: map[NodeType]int{}, NodesByDomain: map[Domain]int{},
		EdgesByType: map[EdgeType]int{}, Stated: map[string]int{}}
	groups := make(union, g.nodePlaces())
	var kinds [256]int
	for r := range g.All() {
		u := uint32(r)
		t := g.typeOf(u)
		s.NodesByType[t]++
		s.NodesByDomain[t.Domain()]++
		switch degree := int(g.degree(u)); {
		case degree == 0:
			s.Isolated++
		case degree > s.MaxDegree:
			s.MaxDegree, s.Hub = degree, g.ID(r)
		}
		l := g.outOf(u)
		for i, to := range l.to {
			kinds[l.kind[i]]++
			groups.join(u, to)
		}
	}
	for t, n := range kinds {
		if n > 0 {
			s.EdgesByType[EdgeType(t)] = n
		}
	}
	s.countGroups(g, groups)
	s.countStated(g)
	return s
}

func (s *Stats) countGroups(g *Graph, groups union) {
	sizes := make([]int, len(groups))
	for r := range g.All() {
		top := groups.find(uint32(r))
		if sizes[top]++; sizes[top] == 1 {
			s.Components++
		}
		s.Largest = max(s.Largest, sizes[top])
	}
}

func (s *Stats) countStated(g *Graph) {
	for row := range int(g.sourceCount) {
		arc, source := g.source(row)
		from := g.out.owner(arc)
		if g.over == nil || !g.over.touched.has(from) {
			s.Stated[source]++
		}
	}
	for _, l := range g.linked() {
		for _, source := range l.source {
			if source != "" {
				s.Stated[source]++
			}
		}
	}
	s.Provenances = len(g.allProvenances())
	for _, c := range g.allConflicts() {
		s.Conflicts++
		if c.Resolution == "" {
			s.Unresolved++
		}
	}
}

// union has for each place another one of its group plus one, up to the top of the group, which has 0.
type union []uint32

func (u union) find(a uint32) uint32 {
	for u[a] != 0 {
		if next := u[a] - 1; u[next] != 0 {
			u[a] = u[next] // shorten the way
		}
		a = u[a] - 1
	}
	return a
}

func (u union) join(a, b uint32) {
	a, b = u.find(a), u.find(b)
	switch {
	case a < b:
		u[b] = a + 1
	case b < a:
		u[a] = b + 1
	}
}
