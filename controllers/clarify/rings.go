package clarify

import (
	"cmp"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// Wait is a blocking question that has no answer: From waits for To.
type Wait struct {
	ID       string
	From, To string
	Created  schemas.Time
	Rank     int // precedence of From: larger is more downstream
}

// Victim is the question of a ring that is given up.
type Victim struct {
	ID   string
	Ring []string // the agents of one ring that it closes, its asker first
}

// downstream orders questions: of two in one ring the greater one is given up.
func downstream(a, b Wait) int {
	return cmp.Or(cmp.Compare(a.Rank, b.Rank), a.Created.Compare(b.Created.Time), strings.Compare(a.ID, b.ID))
}

// Rings returns which questions have to be given up so that no agents wait for each other: of each ring, of any length,
// the one of the most downstream agent (the largest Rank; among equals the later one, then the larger ID). The victims
// come sorted by ID, and do not depend on the order of waits. The work is that of one depth-first search for each victim
// over the agents that its ring is entangled with.
func Rings(waits []Wait) []Victim {
	n := numbered(waits)
	var out []Victim
	for work := n.knots(n.all()); len(work) > 0; {
		knot := work[len(work)-1]
		work = work[:len(work)-1]
		worst := slices.MaxFunc(knot, func(a, b int32) int { return downstream(waits[a], waits[b]) })
		rest := slices.DeleteFunc(slices.Clone(knot), func(e int32) bool { return e == worst })
		out = append(out, Victim{waits[worst].ID, n.ring(worst, rest)})
		work = append(work, n.knots(rest)...)
	}
	slices.SortFunc(out, func(a, b Victim) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// graph is the questions as edges between numbered agents.
type graph struct {
	from, to []int32  // by edge
	agents   []string // by node
	// Scratch of one search, by node.
	out        [][]int32
	index, low []int32 // index 0: not seen
	knot       []int32 // 0: none yet
	stack      []int32
	count      int32
}

func numbered(waits []Wait) *graph {
	g := &graph{from: make([]int32, len(waits)), to: make([]int32, len(waits))}
	number := map[string]int32{}
	of := func(agent string) int32 {
		i, ok := number[agent]
		if !ok {
			i = int32(len(g.agents))
			number[agent] = i
			g.agents = append(g.agents, agent)
		}
		return i
	}
	for i, w := range waits {
		g.from[i], g.to[i] = of(w.From), of(w.To)
	}
	n := len(g.agents)
	g.out, g.index, g.low, g.knot = make([][]int32, n), make([]int32, n), make([]int32, n), make([]int32, n)
	return g
}

func (g *graph) all() []int32 {
	out := make([]int32, len(g.from))
	for i := range out {
		out[i] = int32(i)
	}
	return out
}

// knots splits edges into those of each strongly connected part (Tarjan 1972); edges on no ring are left out.
func (g *graph) knots(edges []int32) [][]int32 {
	g.load(edges)
	for _, e := range edges {
		if g.index[g.from[e]] == 0 {
			g.visit(g.from[e])
		}
	}
	byKnot := map[int32][]int32{}
	for _, e := range edges {
		if k := g.knot[g.from[e]]; k == g.knot[g.to[e]] {
			byKnot[k] = append(byKnot[k], e)
		}
	}
	out := make([][]int32, 0, len(byKnot))
	for _, knot := range byKnot {
		out = append(out, knot) // in any order: the victims are sorted in the end
	}
	return out
}

// load prepares a search over edges.
func (g *graph) load(edges []int32) {
	g.count, g.stack = 0, g.stack[:0]
	for _, e := range edges {
		for _, v := range []int32{g.from[e], g.to[e]} {
			g.out[v], g.index[v], g.knot[v] = g.out[v][:0], 0, 0
		}
	}
	for _, e := range edges {
		g.out[g.from[e]] = append(g.out[g.from[e]], g.to[e])
	}
}

// visit is Tarjan's search from one node. A node whose part is complete has a knot.
func (g *graph) visit(v int32) {
	g.count++
	g.index[v], g.low[v] = g.count, g.count
	g.stack = append(g.stack, v)
	for _, w := range g.out[v] {
		switch {
		case g.index[w] == 0:
			g.visit(w)
			g.low[v] = min(g.low[v], g.low[w])
		case g.knot[w] == 0:
			g.low[v] = min(g.low[v], g.index[w])
		}
	}
	if g.low[v] != g.index[v] {
		return
	}
	for {
		w := g.stack[len(g.stack)-1]
		g.stack = g.stack[:len(g.stack)-1]
		g.knot[w] = g.index[v]
		if w == v {
			return
		}
	}
}

// ring is the shortest way along edges that closes a ring with edge e; ties go by the names of the agents.
func (g *graph) ring(e int32, edges []int32) []string {
	next := map[int32][]int32{}
	for _, r := range edges {
		next[g.from[r]] = append(next[g.from[r]], g.to[r])
	}
	start, goal := g.to[e], g.from[e]
	came := map[int32]int32{start: -1}
	for queue := []int32{start}; len(queue) > 0; queue = queue[1:] {
		v := queue[0]
		if v == goal {
			break
		}
		slices.SortFunc(next[v], func(a, b int32) int { return strings.Compare(g.agents[a], g.agents[b]) })
		for _, w := range next[v] {
			if _, seen := came[w]; !seen {
				came[w] = v
				queue = append(queue, w)
			}
		}
	}
	var way []string
	for v := goal; v != start; v = came[v] {
		way = append(way, g.agents[v])
	}
	if start != goal {
		way = append(way, g.agents[start])
	}
	slices.Reverse(way[1:]) // from the asker along the questions
	return way
}
