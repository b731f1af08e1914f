package graph

import "slices"

// Direction is which way edges are walked.
type Direction uint8

// The directions; the zero value is both.
const (
	Both Direction = iota
	Out            // from From to To
	In             // from To to From
)

// reverse leads back.
func (d Direction) reverse() Direction {
	switch d {
	case Out:
		return In
	case In:
		return Out
	}
	return Both
}

// Filter says which edges are walked, and which nodes they may lead to. The zero value is all of them in both directions.
type Filter struct {
	Direction Direction
	Edges     []EdgeType // none: all
	Domains   []Domain   // none: all
	Types     []NodeType // none: all
}

// graphWalker walks a graph through a filter.
type graphWalker struct {
	graph        *Graph
	direction    Direction
	edges, types mask
	plain        bool // all nodes are entered
}

func (g *Graph) walker(f Filter) graphWalker {
	w := graphWalker{graph: g, direction: f.Direction, edges: maskOf(f.Edges), types: maskOf(f.Types)}
	if len(f.Domains) > 0 {
		var inside mask
		for _, d := range f.Domains {
			inside |= maskOf(d.Types())
		}
		w.types &= inside
	}
	w.plain = w.types == ^mask(0)
	return w
}

// back walks the other way.
func (w graphWalker) back() graphWalker {
	w.direction = w.direction.reverse()
	return w
}

// arcsAt are the arcs to walk from a node: those that leave it first.
func (w *graphWalker) arcsAt(u uint32) (lists [2]list) {
	if w.direction != In {
		lists[0] = w.graph.outOf(u)
	}
	if w.direction != Out {
		lists[1] = w.graph.inOf(u)
	}
	return lists
}

// enters reports whether nodes of the place's type are entered.
func (w *graphWalker) enters(u uint32) bool { return w.plain || w.types.has(byte(w.graph.typeOf(u))) }

// visits is what a walk remembers of nodes. Marking all of them as new takes one addition: a mark holds only while it
// is that of the walk.
type visits struct {
	epoch uint32
	marks []uint32
	// value is what a walk notes of a place that it marked.
	value []uint32
	order []Visit   // of a walk
	found []reached // of an expansion
}

// visit returns reusable state for walks over that many places. The caller returns it to the pool.
func (g *Graph) visit(places int) *visits {
	v := g.visits.Get().(*visits)
	if len(v.marks) < places {
		v.marks, v.value, v.epoch = make([]uint32, places), make([]uint32, places), 0
	}
	if v.epoch++; v.epoch == 0 {
		clear(v.marks)
		v.epoch = 1
	}
	v.order, v.found = v.order[:0], v.found[:0]
	return v
}

func (v *visits) has(u uint32) bool { return v.marks[u] == v.epoch }

// mark marks a place, and reports whether it was not.
func (v *visits) mark(u, value uint32) bool {
	if v.marks[u] == v.epoch {
		return false
	}
	v.marks[u], v.value[u] = v.epoch, value
	return true
}

// Reach limits a walk. The zero value is unlimited, breadth first.
type Reach struct {
	Filter
	// Depth is how many edges a node may be away from where the walk starts. 0: any number.
	Depth int
	// Max is how many nodes are visited, those where it starts included. 0: any number.
	Max int
	// DepthFirst follows each way to its end before the next. With a Depth it visits the same nodes as breadth first.
	DepthFirst bool
}

// Visit is a visited node.
type Visit struct {
	Node Ref
	// From is the node that it came from: itself where the walk starts.
	From Ref
	// Depth is how many edges it had walked.
	Depth int
}

// Walk visits what can be reached from nodes, each once, these first of all. Edges that leave a node are walked before
// those that lead to it, each by type and by the id at the other end. more is whether Max left something out.
func (g *Graph) Walk(from []Ref, r Reach) (visited []Visit, more bool) {
	w, v := g.walker(r.Filter), g.visit(int(g.nodePlaces()))
	defer g.visits.Put(v)
	if r.Depth <= 0 {
		r.Depth = int(g.nodePlaces())
	}
	if r.Max <= 0 {
		r.Max = int(g.nodePlaces())
	}
	if r.DepthFirst {
		more = w.depthFirst(v, from, r)
	} else {
		more = w.breadthFirst(v, from, r)
	}
	return slices.Clone(v.order), more
}

func (w *graphWalker) breadthFirst(v *visits, from []Ref, r Reach) (more bool) {
	for _, s := range from {
		if w.graph.has(s) && v.mark(uint32(s), 0) {
			if len(v.order) == r.Max {
				return true
			}
			v.order = append(v.order, Visit{Node: s, From: s})
		}
	}
	for next := 0; next < len(v.order); next++ {
		at := v.order[next]
		if at.Depth >= r.Depth {
			break
		}
		for _, l := range w.arcsAt(uint32(at.Node)) {
			for i, to := range l.to {
				if v.has(to) || !w.edges.has(l.kind[i]) || !w.enters(to) {
					continue
				}
				if len(v.order) == r.Max {
					return true
				}
				v.mark(to, 0)
				v.order = append(v.order, Visit{Node: Ref(to), From: at.Node, Depth: at.Depth + 1})
			}
		}
	}
	return false
}

// frame is a node on the way of a depth first walk, and which of its arcs is next.
type frame struct {
	node      uint32
	way, next int
}

// depthFirst visits each node when it first reaches it. It walks from a node again when it reaches it by a shorter
// path, because more nodes are within the depth then; value is the length of the shortest path.
func (w *graphWalker) depthFirst(v *visits, from []Ref, r Reach) (more bool) {
	var stack []frame
	for _, s := range from {
		if !w.graph.has(s) || v.has(uint32(s)) && v.value[s] == 0 {
			continue
		}
		if !v.has(uint32(s)) {
			if len(v.order) == r.Max {
				return true
			}
			v.order = append(v.order, Visit{Node: s, From: s})
		}
		v.mark(uint32(s), 0)
		v.value[s] = 0
		for stack = append(stack[:0], frame{node: uint32(s)}); len(stack) > 0; {
			top := &stack[len(stack)-1]
			to, ok := w.step(v, top, len(stack), r.Depth)
			if !ok {
				stack = stack[:len(stack)-1]
				continue
			}
			if v.mark(to, uint32(len(stack))) {
				if len(v.order) == r.Max {
					return true
				}
				v.order = append(v.order, Visit{Node: Ref(to), From: Ref(top.node), Depth: len(stack)})
			}
			v.value[to] = uint32(len(stack))
			stack = append(stack, frame{node: to})
		}
	}
	return false
}

// step is the next node from a frame that was not visited by a way as short as depth.
func (w *graphWalker) step(v *visits, f *frame, depth, limit int) (uint32, bool) {
	if depth > limit {
		return 0, false
	}
	lists := w.arcsAt(f.node)
	for ; f.way < len(lists); f.way, f.next = f.way+1, 0 {
		for l := &lists[f.way]; f.next < len(l.to); {
			i := f.next
			f.next++
			to := l.to[i]
			shorter := !v.has(to) || limit < int(w.graph.nodePlaces()) && v.value[to] > uint32(depth)
			if shorter && w.edges.has(l.kind[i]) && w.enters(to) {
				return to, true
			}
		}
	}
	return 0, false
}

// Component walks from a node along the filter's edges in both directions, and returns the visited nodes of its
// connected component, itself first, nearest first: at most max, if that is not 0. more is whether there are more.
func (g *Graph) Component(r Ref, f Filter, max int) (visited []Visit, more bool) {
	f.Direction = Both
	return g.Walk([]Ref{r}, Reach{Filter: f, Max: max})
}

// each calls do with what the edges lead to, and their weights.
func (w *graphWalker) each(u uint32, do func(to, weight uint32)) {
	for _, l := range w.arcsAt(u) {
		for i, to := range l.to {
			if w.edges.has(l.kind[i]) {
				do(to, l.weight[i])
			}
		}
	}
}

// bitset is a set of places.
type bitset []uint64

func (b bitset) has(u uint32) bool { return int(u>>6) < len(b) && b[u>>6]&(1<<(u&63)) != 0 }

func (b *bitset) add(u uint32) {
	for int(u>>6) >= len(*b) {
		*b = append(*b, 0)
	}
	(*b)[u>>6] |= 1 << (u & 63)
}

func (b bitset) remove(u uint32) {
	if b.has(u) {
		b[u>>6] &^= 1 << (u & 63)
	}
}
