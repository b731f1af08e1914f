package graph

import (
	"slices"
)

// Step is an edge of a path, in its own direction. [Graph.Edge] returns it with its source.
type Step struct {
	From, To Ref
	Type     EdgeType
	Weight   float32
}

// Path is a way through the graph.
type Path struct {
	Nodes []Ref
	Steps []Step // one less than nodes
	// Weight is the product of the weights of the steps, 1 for none.
	Weight float64
}

// Scores are counted in 1/unit: sums and products of whole numbers are the same on every processor.
const (
	unitBits = 30
	unit     = 1 << unitBits
)

// best is the step from one node to another that the walker may take: the heaviest, then the one that leaves the first,
// then the first by type. ok is whether there is one.
func (w *graphWalker) best(from, to uint32) (step Step, weight uint32, ok bool) {
	lists, other := w.arcsAt(from), to
	if w.graph.degree(to) < w.graph.degree(from) { // the same edges, seen from their other end
		back := w.back()
		lists, other = back.arcsAt(to), from
		lists[0], lists[1] = lists[1], lists[0]
	}
	for way, l := range lists {
		for i, end := range l.to {
			if end != other || !w.edges.has(l.kind[i]) || ok && l.weight[i] <= weight {
				continue
			}
			weight, ok = l.weight[i], true
			step = Step{From: Ref(from), To: Ref(to), Type: EdgeType(l.kind[i]), Weight: weightOf(weight)}
			if way == 1 {
				step.From, step.To = step.To, step.From
			}
		}
	}
	return step, weight, ok
}

// path is the way along nodes that follow each other, by the best steps.
func (w *graphWalker) path(nodes []Ref) Path {
	p := Path{Nodes: nodes}
	weight := uint64(unit)
	for i := 1; i < len(nodes); i++ {
		step, heaviest, _ := w.best(uint32(nodes[i-1]), uint32(nodes[i]))
		p.Steps = append(p.Steps, step)
		weight = times(weight, weightUnits(heaviest))
	}
	p.Weight = float64(weight) / unit
	return p
}

// ShortestPath finds a shortest path from one node of the graph to another, one with the fewest edges that the filter
// admits. Of several it is the one whose ids come first, compared from the start. The filter does not concern the two
// nodes themselves. ok is whether there is a way.
func (g *Graph) ShortestPath(from, to Ref, f Filter) (path Path, ok bool) {
	w := g.walker(f)
	if !g.has(from) || !g.has(to) {
		return Path{}, false
	}
	if from == to {
		return w.path([]Ref{from}), true
	}
	ahead, behind := w.side(uint32(from), uint32(to)), w.back().side(uint32(to), uint32(from))
	defer func() {
		g.visits.Put(ahead.visits)
		g.visits.Put(behind.visits)
	}()
	for !ahead.met {
		next, other := ahead, behind
		if len(behind.front) < len(ahead.front) {
			next, other = behind, ahead
		}
		if len(next.front) == 0 {
			return Path{}, false
		}
		next.grow(other)
		ahead.met = ahead.met || behind.met
	}
	return w.path(ahead.join(behind)), true
}

// side is a search from one end of a path. It marks places with how far they are from there.
type side struct {
	graphWalker
	*visits
	target uint32 // the other end: it is entered whatever the filter says
	front  []uint32
	depth  uint32 // of the front
	met    bool
}

func (w graphWalker) side(from, target uint32) *side {
	s := &side{graphWalker: w, visits: w.graph.visit(int(w.graph.nodePlaces())), target: target, front: []uint32{from}}
	s.mark(from, 0)
	return s
}

// grow goes one edge further. Since whole fronts grow, the first that meet have met on all shortest ways.
func (s *side) grow(other *side) {
	var front []uint32
	s.depth++
	for _, u := range s.front {
		for _, l := range s.arcsAt(u) {
			for i, to := range l.to {
				if !s.has(to) && s.edges.has(l.kind[i]) && (to == s.target || s.enters(to)) {
					s.mark(to, s.depth)
					front = append(front, to)
					s.met = s.met || other.has(to)
				}
			}
		}
	}
	s.front = front
}

// at reports whether the side found a place so far from its end.
func (s *side) at(u, depth uint32) bool { return s.has(u) && s.value[u] == depth }

// join is the first of the shortest ways, once the sides have met: s has the start.
func (s *side) join(other *side) []Ref {
	good := s.graph.visit(int(s.graph.nodePlaces())) // places of s on a shortest way
	defer s.graph.visits.Put(good)
	var level []uint32
	for _, u := range s.front {
		if other.at(u, other.depth) && good.mark(u, 0) {
			level = append(level, u)
		}
	}
	back := s.back()
	for depth := s.depth; depth > 0; depth-- {
		var before []uint32
		for _, u := range level {
			back.each(u, func(from, _ uint32) {
				if s.at(from, depth-1) && good.mark(from, 0) {
					before = append(before, from)
				}
			})
		}
		level = before
	}
	nodes := []Ref{Ref(other.target)}
	for depth := uint32(1); depth <= s.depth+other.depth; depth++ {
		next := uint32(s.target)
		s.each(uint32(nodes[len(nodes)-1]), func(to, _ uint32) {
			fits := depth <= s.depth && s.at(to, depth) && good.has(to) ||
				depth > s.depth && other.at(to, s.depth+other.depth-depth)
			if fits && (next == s.target || s.graph.before(to, next)) {
				next = to
			}
		})
		nodes = append(nodes, Ref(next))
	}
	return nodes
}

// tracePath follows the predecessors in before from last back to from, and returns the path from the first node.
func tracePath(before map[uint32]uint32, from, last uint32) []Ref {
	nodes := []Ref{Ref(from)}
	for u := last; u != from; u = before[u] {
		nodes = append(nodes, Ref(u))
	}
	nodes = append(nodes, Ref(from))
	slices.Reverse(nodes)
	return nodes
}
