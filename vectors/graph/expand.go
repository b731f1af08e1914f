package graph

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
)

// Seed is a node with its match score: 0 to 1.
type Seed struct {
	Node  Ref
	Score float64
}

// Expansion configures the distance and the scores of an expansion.
type Expansion struct {
	// Filter applies to the nodes that edges lead to, not to the seeds.
	Filter
	// Depth is how many edges from a seed a result may be, up to 8; 0: 2.
	Depth int
	// Alpha is the part of a seed's own score in the final score, the rest is the graph's: above 0 up to 1; 0: 0.7.
	Alpha float64
	// MinScore is the least final score of a result, 0 to 1. No edges are followed from a node with less.
	MinScore float64
	// Max is how many results are wanted; 0: 50.
	Max int
}

const (
	defaultDepth, deepest = 2, 8
	// DefaultAlpha is the Alpha of an expansion that names none.
	DefaultAlpha   = 0.7
	defaultResults = 50
	// minPassed is the score below which nothing is passed on.
	minPassed = unit >> 8
	// maxReached is the number of nodes after which no deeper level is begun.
	maxReached = 1 << 13
)

// Result is a node that was found by its own score, by the graph, or by both.
type Result struct {
	Node Ref
	// GraphScore is the score received over edges; 0 if none.
	GraphScore float64
	// FinalScore is Alpha * the score of its seed, 0 for other nodes, + (1 - Alpha) * GraphScore.
	FinalScore float64
	expanded   *expanded
	at         int32 // index in its nodes
}

// Steps returns the edges from a seed to the node; of several paths the one that passed most, of equal ones the first one walked. A seed
// has none.
func (r *Result) Steps() []Step {
	var steps []Step
	for x, i := r.expanded, r.at; x.parents[i] != i; i = x.parents[i] {
		step, _, _ := x.best(x.nodes[x.parents[i]], x.nodes[i])
		steps = append(steps, step)
	}
	slices.Reverse(steps)
	return steps
}

// expanded is the way to each node that an expansion reached: the index of the one before it; its own for seeds.
type expanded struct {
	graphWalker
	nodes   []uint32
	parents []int32
}

// passed is how much of a score an edge of a type passes on, in 1/100; an edge of the weight 1 between nodes without
// others.
var passed = []uint64{
	Calls: 60, Imports: 35, Defines: 65, Implements: 65, Contains: 50, Follows: 40, Causes: 70, Resolves: 80, LedTo: 70,
	References: 70, AppliesTo: 70, Documents: 80, Modified: 55, UsedPattern: 60,
}

// Expand finds nodes related to the seeds by spreading activation: the scores of the seeds spread over the edges of the
// graph. Each seed passes its score on over the edges of its node, and the receivers pass theirs on, for Depth levels;
// nodes of the first level that are seeds receive it as their graph score. An edge passes on
//
//	score * passed(type) * weight / (spread(from) * spread(to)), where spread(node) = 1 + log2(its edges) / 4
//
// so that a node with many edges passes on little. The scores that a node receives on its first level are added up, to
// at most 1. Scores below 1/256 are dropped, and after 8,192 nodes no further level is begun. The results are sorted by
// their final score, equal ones by id.
//
// This is spreading activation with constraints on distance, fan-out and kind of edge (Crestani, "Application of
// spreading activation techniques in information retrieval", 1997).
func (g *Graph) Expand(seeds []Seed, x Expansion) ([]Result, error) {
	if err := x.complete(); err != nil {
		return nil, err
	}
	s := &spreading{graphWalker: g.walker(x.Filter), visits: g.visit(int(g.nodePlaces())), alpha: uint64(x.Alpha * unit),
		least: uint64(x.MinScore * unit)}
	defer g.visits.Put(s.visits)
	for t, percent := range passed {
		s.passed[t] = percent * unit / 100
	}
	s.addSeeds(seeds)
	from := 0
	for depth := int32(1); depth <= int32(x.Depth) && len(s.found) <= maxReached; depth++ {
		to := len(s.found)
		for i := from; i < to; i++ {
			s.spread(int32(i), depth)
		}
		from = to
	}
	return s.results(x.Max), nil
}

// complete checks the options, and sets the defaults.
func (x *Expansion) complete() error {
	switch {
	case x.Depth < 0 || x.Depth > deepest:
		return fmt.Errorf("the depth of the expansion is %d; write 1 to %d", x.Depth, deepest)
	case !(x.Alpha >= 0 && x.Alpha <= 1):
		return fmt.Errorf("alpha is %v; write 0 to 1", x.Alpha)
	case !(x.MinScore >= 0 && x.MinScore <= 1):
		return fmt.Errorf("the least score is %v; write 0 to 1", x.MinScore)
	}
	if x.Depth == 0 {
		x.Depth = defaultDepth
	}
	if x.Alpha == 0 {
		x.Alpha = DefaultAlpha
	}
	if x.Max <= 0 {
		x.Max = defaultResults
	}
	return nil
}

// spreading is the state of an expansion. The value of a place is its index in found.
type spreading struct {
	graphWalker
	*visits
	alpha, least uint64 // in 1/unit, like all scores here
	passed       [256]uint64
}

// reached is a node that got a score.
type reached struct {
	node          uint32
	parent, depth int32 // parent is an index in found; itself for seeds
	own, got      uint32
	most          uint32 // of the largest single score received, from parent
}

// addSeeds adds the seeds, in the order of their ids.
func (s *spreading) addSeeds(seeds []Seed) {
	for _, seed := range seeds {
		if !s.graphWalker.graph.has(seed.Node) || !(seed.Score > 0) {
			continue
		}
		score := uint32(min(seed.Score, 1) * unit)
		if s.mark(uint32(seed.Node), uint32(len(s.found))) {
			s.found = append(s.found, reached{node: uint32(seed.Node)})
		}
		r := &s.found[s.value[seed.Node]]
		r.own = max(r.own, score)
	}
	slices.SortFunc(s.found, func(a, b reached) int { return s.graph.byID(a.node, b.node) })
	for i := range s.found {
		s.found[i].parent = int32(i)
		s.value[s.found[i].node] = uint32(i)
	}
}

// final is the final score of a node.
func (s *spreading) final(r *reached) uint64 {
	return times(s.alpha, uint64(r.own)) + times(unit-s.alpha, uint64(r.got))
}

// damping is 1/spread by the number of bits of how many edges a node has.
var damping = [33]uint64{
	unit, unit, unit * 4 / 5, unit * 4 / 6, unit * 4 / 7, unit * 4 / 8, unit * 4 / 9, unit * 4 / 10, unit * 4 / 11,
	unit * 4 / 12, unit * 4 / 13, unit * 4 / 14, unit * 4 / 15, unit * 4 / 16, unit * 4 / 17, unit * 4 / 18, unit * 4 / 19,
	unit * 4 / 20, unit * 4 / 21, unit * 4 / 22, unit * 4 / 23, unit * 4 / 24, unit * 4 / 25, unit * 4 / 26, unit * 4 / 27,
	unit * 4 / 28, unit * 4 / 29, unit * 4 / 30, unit * 4 / 31, unit * 4 / 32, unit * 4 / 33, unit * 4 / 34, unit * 4 / 35,
}

// damped returns the part of a score that a node with its edges passes on.
func (s *spreading) damped(u uint32, score uint64) uint64 {
	return score * damping[bits.Len32(s.graph.degree(u))] >> unitBits
}

// spread passes on the score of a node.
func (s *spreading) spread(i, depth int32) {
	at := &s.found[i]
	score, part := uint64(at.own), s.alpha
	if depth > 1 {
		score, part = uint64(at.got), unit-s.alpha
	}
	enough := times(part, score) >= s.least
	if score = s.damped(at.node, score); score < minPassed || !enough {
		return
	}
	u := at.node
	for _, l := range s.arcsAt(u) {
		for j, to := range l.to {
			kind := l.kind[j]
			if to == u || !s.edges.has(kind) {
				continue
			}
			amount := score * s.passed[kind] >> unitBits
			if l.weight[j] != one {
				amount = times(amount, weightUnits(l.weight[j]))
			}
			if amount = s.damped(to, amount); amount >= minPassed {
				s.pass(i, to, uint32(amount), depth)
			}
		}
	}
}

// pass adds a score from one node to another.
func (s *spreading) pass(from int32, to, amount uint32, depth int32) {
	if !s.has(to) {
		if !s.enters(to) {
			return
		}
		s.mark(to, uint32(len(s.found)))
		s.found = append(s.found, reached{node: to, parent: from, depth: depth, got: amount, most: amount})
		return
	}
	r := &s.found[s.value[to]]
	switch {
	case r.depth == 0 && depth == 1:
		r.got = min(r.got+amount, unit)
	case r.depth == depth:
		r.got = min(r.got+amount, unit)
		if amount > r.most {
			r.most, r.parent = amount, from
		}
	}
}

// results returns the best results.
func (s *spreading) results(limit int) []Result {
	const index = 32 // bits of the lower half of a key, below the final score
	x := &expanded{s.graphWalker, make([]uint32, len(s.found)), make([]int32, len(s.found))}
	keys := make([]uint64, 0, len(s.found))
	for i := range s.found {
		r := &s.found[i]
		x.nodes[i], x.parents[i] = r.node, r.parent
		if final := s.final(r); final >= s.least {
			keys = append(keys, final<<index|uint64(i))
		}
	}
	slices.Sort(keys)
	slices.Reverse(keys)
	for from, to := 0, 0; from < min(len(keys), limit); from = to {
		for to < len(keys) && keys[to]>>index == keys[from]>>index {
			to++
		}
		slices.SortFunc(keys[from:to], func(a, b uint64) int { return s.graph.byID(x.nodes[uint32(a)], x.nodes[uint32(b)]) })
	}
	out := make([]Result, min(len(keys), limit))
	for i := range out {
		at := int32(uint32(keys[i]))
		r := &s.found[at]
		out[i] = Result{Node: Ref(r.node), GraphScore: float64(r.got) / unit, FinalScore: float64(s.final(r)) / unit, expanded: x, at: at}
	}
	return out
}

func weightOf(bits uint32) float32 { return math.Float32frombits(bits) }

// weightUnits is a weight in 1/unit, rounded down.
func weightUnits(weight uint32) uint64 { return uint64(float64(weightOf(weight)) * unit) }

// times is the product of two numbers in 1/unit.
func times(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a, b)
	return hi<<(64-unitBits) | lo>>unitBits
}
