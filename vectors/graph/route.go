package graph

import (
	"cmp"
	"fmt"
	"slices"
)

// Route says which paths are wanted.
type Route struct {
	// Filter holds for the nodes on the way, not for the ends that are given.
	Filter
	From Ref
	// To are the nodes where a path may end. None: at any of the types Ends that the filter lets in.
	To []Ref
	// Ends are the types of nodes where a path may end. None: all.
	Ends []NodeType
	// Through are the domains that a path goes through: in this order, in each for as long as it likes, and it ends in
	// the last. Code, Academic, History is from code by documents to what happened. None: any.
	Through []Domain
	// MaxLength is how many edges a path may have, up to 16; 0: 6.
	MaxLength int
	// MaxResults is how many paths are wanted; 0: 10.
	MaxResults int
	// MinWeight is the least product of the weights of a path, 0 to 1.
	MinWeight float64
}

const (
	defaultLength, longestPath = 6, 16
	defaultPaths               = 10
	// maxSteps is how many edges are looked at before the search for paths gives up.
	maxSteps = 2_000_000
)

// Paths returns the paths of a route that visit no node twice: the shortest first, those of one length in the order
// of the ids of their nodes. Between two nodes a path uses the heaviest edge. more reports whether there are, or may
// be because the search took too long, more than MaxResults. The error describes an invalid route.
func (g *Graph) Paths(r Route) (paths []Path, more bool, err error) {
	if err := g.checkRoute(&r); err != nil {
		return nil, false, err
	}
	if !g.has(r.From) {
		return nil, false, nil
	}
	f := g.routing(r)
	defer g.visits.Put(f.left)
	defer g.visits.Put(f.on)
	start := uint32(0)
	if !f.inStage(uint32(r.From), start) {
		return nil, false, nil
	}
	f.measure()
	for f.length = 1; f.length <= r.MaxLength && !f.over(); f.length++ {
		if f.reaches(uint32(r.From), start, f.length) {
			f.search()
		}
	}
	more = f.steps > maxSteps || len(f.found) > r.MaxResults
	return f.found[:min(len(f.found), r.MaxResults)], more, nil
}

// checkRoute checks a route, and sets the defaults.
func (g *Graph) checkRoute(r *Route) error {
	switch {
	case r.MaxLength < 0 || r.MaxLength > longestPath:
		return fmt.Errorf("paths of up to %d edges are wanted; write 1 to %d", r.MaxLength, longestPath)
	case !(r.MinWeight >= 0 && r.MinWeight <= 1):
		return fmt.Errorf("paths of the weight %v or more are wanted; write 0 to 1", r.MinWeight)
	case len(r.Through) > longestPath:
		return fmt.Errorf("paths through %d domains are wanted; write up to %d", len(r.Through), longestPath)
	}
	for _, d := range r.Through {
		if d == 0 || int(d) >= len(domainNames) {
			return fmt.Errorf("paths through %s are wanted, which is no domain", d)
		}
	}
	r.Through = slices.Compact(slices.Clone(r.Through))
	if r.MaxLength == 0 {
		r.MaxLength = defaultLength
	}
	if r.MaxResults <= 0 {
		r.MaxResults = defaultPaths
	}
	return nil
}

// routing searches the paths of a route. A state is a place and how far the path has come in the list of domains.
type routing struct {
	graphWalker
	route  Route
	ends   mask
	to     map[uint32]bool
	stages uint32
	least  uint64  // weight in 1/unit
	left   *visits // by state: how many edges are left to an end, at least
	on     *visits // the places on the path; value 0 means that it was left again
	length int     // of the paths that are searched
	steps  int
	found  []Path
}

func (g *Graph) routing(r Route) *routing {
	f := &routing{graphWalker: g.walker(r.Filter), route: r, ends: maskOf(r.Ends), to: map[uint32]bool{},
		stages: max(1, uint32(len(r.Through))), least: uint64(r.MinWeight * unit)}
	f.left, f.on = g.visit(int(g.nodePlaces())*int(f.stages)), g.visit(int(g.nodePlaces()))
	for _, to := range r.To {
		if g.has(to) {
			f.to[uint32(to)] = true
		}
	}
	return f
}

func (f *routing) over() bool { return f.steps > maxSteps || len(f.found) > f.route.MaxResults }

func (f *routing) state(u, stage uint32) uint32 { return u*f.stages + stage }

// inStage reports whether the place is in the domain of the stage.
func (f *routing) inStage(u, stage uint32) bool {
	return len(f.route.Through) == 0 || f.graph.typeOf(u).Domain() == f.route.Through[stage]
}

// next is the stage of a path that goes on to a place; false if it may not go there.
func (f *routing) next(u, stage uint32) (uint32, bool) {
	switch {
	case f.inStage(u, stage):
		return stage, true
	case stage+1 < f.stages && f.inStage(u, stage+1):
		return stage + 1, true
	}
	return 0, false
}

// isEnd reports whether a path may end at the place.
func (f *routing) isEnd(u uint32) bool {
	if !f.inStage(u, f.stages-1) || !f.ends.has(byte(f.graph.typeOf(u))) {
		return false
	}
	if len(f.route.To) > 0 {
		return f.to[u]
	}
	return f.enters(u)
}

// mayPass reports whether a path may come to the place at all.
func (f *routing) mayPass(u uint32) bool { return f.enters(u) || f.to[u] || u == uint32(f.route.From) }

// measure finds how far all states are from an end, walking back from the ends.
func (f *routing) measure() {
	front := f.endStates()
	back := f.back()
	for depth := uint32(1); depth <= uint32(f.route.MaxLength) && len(front) > 0; depth++ {
		var before []uint32
		for _, state := range front {
			u, stage := state/f.stages, state%f.stages
			back.each(u, func(from, _ uint32) {
				if !f.mayPass(from) {
					return
				}
				s, ok := stage, f.inStage(from, stage)
				if !ok && stage > 0 {
					s, ok = stage-1, f.inStage(from, stage-1)
				}
				if ok && f.left.mark(f.state(from, s), depth) {
					before = append(before, f.state(from, s))
				}
			})
		}
		front = before
	}
}

// endStates marks the states in which a path may end.
func (f *routing) endStates() []uint32 {
	var out []uint32
	end := func(u uint32) {
		if state := f.state(u, f.stages-1); f.isEnd(u) && f.left.mark(state, 0) {
			out = append(out, state)
		}
	}
	if len(f.route.To) > 0 {
		for to := range f.to {
			end(to)
		}
		return out
	}
	for r := range f.graph.All() {
		end(uint32(r))
	}
	return out
}

// reaches reports whether an end may be at most length edges away.
func (f *routing) reaches(u, stage uint32, length int) bool {
	state := f.state(u, stage)
	return f.left.has(state) && int(f.left.value[state]) <= length
}

// turn is a place of a path, and where it may go on.
type turn struct {
	node, stage uint32
	weight      uint64 // of the path so far
	ways        []way
}

// way is where a path may go on by an edge of the weight.
type way struct{ to, weight uint32 }

// search finds the paths that have exactly the length, in the order of ids.
func (f *routing) search() {
	path := []turn{{node: uint32(f.route.From), weight: unit}}
	f.enter(&path[0], 0)
	for len(path) > 0 && !f.over() {
		top := &path[len(path)-1]
		if len(top.ways) == 0 {
			f.on.value[top.node] = 0
			path = path[:len(path)-1]
			continue
		}
		next := top.ways[0]
		top.ways = top.ways[1:]
		stage, _ := f.next(next.to, top.stage)
		step := turn{node: next.to, stage: stage, weight: times(top.weight, weightUnits(next.weight))}
		switch {
		case step.weight < f.least:
		case len(path) < f.length:
			f.enter(&step, len(path))
			path = append(path, step)
		default:
			f.found = append(f.found, f.take(path, next.to))
		}
	}
	for _, t := range path {
		f.on.value[t.node] = 0
	}
}

func (f *routing) take(path []turn, end uint32) Path {
	var nodes []Ref
	for _, t := range path {
		nodes = append(nodes, Ref(t.node))
	}
	return f.path(append(nodes, Ref(end)))
}

// enter adds a place to the path and finds the possible next places after length edges.
func (f *routing) enter(t *turn, length int) {
	f.on.mark(t.node, 1)
	f.on.value[t.node] = 1
	left := f.length - length - 1
	f.each(t.node, func(to, weight uint32) {
		f.steps++
		stage, ok := f.next(to, t.stage)
		if !ok || f.on.has(to) && f.on.value[to] != 0 || !f.mayPass(to) {
			return
		}
		if left == 0 && stage == f.stages-1 && f.isEnd(to) || left > 0 && f.reaches(to, stage, left) {
			t.ways = append(t.ways, way{to, weight})
		}
	})
	slices.SortFunc(t.ways, func(a, b way) int { return cmp.Or(f.graph.byID(a.to, b.to), cmp.Compare(b.weight, a.weight)) })
	t.ways = slices.CompactFunc(t.ways, func(a, b way) bool { return a.to == b.to })
}
