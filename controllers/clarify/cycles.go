package clarify

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/topology"
)

// Wait is a blocking question that has no answer: From waits for To.
type Wait struct {
	ID       string
	From, To string
	Created  schemas.Time
	Rank     int // precedence of From: larger is more downstream
}

// victim is a question of a cycle that is given up.
type victim struct {
	ID   string
	Ring []string // the agents of one cycle that it closes, its asker first
}

// downstream orders questions: of two in one ring the greater one is given up.
func downstream(a, b Wait) int {
	return cmp.Or(cmp.Compare(a.Rank, b.Rank), a.Created.Compare(b.Created.Time), strings.Compare(a.ID, b.ID))
}

// rings breaks the cycles of agents that wait for each other's answers, and returns the victims, the questions to give
// up. Of each cycle, of any length, the victim is the question of the most downstream agent (the largest Rank; among
// equals the later one, then the larger ID). The victims are sorted by ID, and do not depend on the order of waits.
//
// A question is a victim if it closes a cycle with questions that are all more upstream: if its two agents are in one
// strongly connected component as soon as the questions up to it are inserted, the most upstream first. The insertion
// that joins them is found for all questions at once by bisecting the order, in O(n·log n) steps of a depth-first
// search.
func rings(waits []Wait) []victim {
	g := newGraph(waits)
	edges := g.cyclic(g.allEdges())
	if len(edges) == 0 {
		return nil
	}
	g.closers(0, len(waits), edges)
	var out []victim
	pairs := g.pairs()
	for _, e := range g.victims {
		out = append(out, victim{g.waits[e].ID, g.ring(e, pairs)})
	}
	slices.SortFunc(out, func(a, b victim) int { return strings.Compare(a.ID, b.ID) })
	return out
}

// cycleGraph has questions as edges between numbered agents. Edges are numbered from upstream to downstream.
type cycleGraph struct {
	waits    []Wait
	from, to []int32  // agents, by edge
	agents   []string // by number
	parent   []int32  // united agents (union-find)
	victims  []int32

	out         [][]int32 // of the search: successors of an agent
	component   []int32   // the component of an agent, by one of its agents
	components  *topology.Components
	predecessor []int32 // of ring: predecessor of each agent, plus one
	queue       []int32
}

func newGraph(waits []Wait) *cycleGraph {
	g := &cycleGraph{waits: slices.SortedFunc(slices.Values(waits), downstream)}
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
	for _, w := range g.waits {
		g.from, g.to = append(g.from, of(w.From)), append(g.to, of(w.To))
	}
	g.parent = make([]int32, len(g.agents))
	for i := range g.parent {
		g.parent[i] = int32(i)
	}
	n := len(g.agents)
	g.out, g.component, g.predecessor, g.components = make([][]int32, n), make([]int32, n), make([]int32, n), topology.NewComponents(n)
	return g
}

func (g *cycleGraph) allEdges() []int32 {
	out := make([]int32, len(g.from))
	for i := range out {
		out[i] = int32(i)
	}
	return out
}

// find returns the representative of v (union-find).
func (g *cycleGraph) find(v int32) int32 {
	for g.parent[v] != v {
		g.parent[v] = g.parent[g.parent[v]]
		v = g.parent[v]
	}
	return v
}

// cyclic returns the edges that lie inside a strongly connected component of edges.
func (g *cycleGraph) cyclic(edges []int32) []int32 {
	g.search(edges, func(e int32) (int32, int32) { return g.find(g.from[e]), g.find(g.to[e]) })
	return slices.DeleteFunc(slices.Clone(edges), func(e int32) bool { return !g.inside(e) })
}

func (g *cycleGraph) inside(e int32) bool {
	return g.component[g.find(g.from[e])] == g.component[g.find(g.to[e])]
}

// closers finds the victims among edges, given that the agents of each join one component with the insertion of edge
// lo at the earliest, and hi at the latest. Agents that were in one component before are united already.
func (g *cycleGraph) closers(lo, hi int, edges []int32) {
	if len(edges) == 0 {
		return
	}
	if lo == hi {
		g.unite(int32(lo), edges)
		return
	}
	mid := (lo + hi) / 2
	n, _ := slices.BinarySearch(edges, int32(mid+1))
	g.cyclic(edges[:n])
	var early, late []int32
	for i, e := range edges {
		if i < n && g.inside(e) {
			early = append(early, e)
		} else {
			late = append(late, e)
		}
	}
	g.closers(lo, mid, early)
	g.closers(mid+1, hi, late)
}

// unite joins the agents of edges, which the insertion of edge last put into one component: a victim, if it is among
// them.
func (g *cycleGraph) unite(last int32, edges []int32) {
	for _, e := range edges {
		if e == last {
			g.victims = append(g.victims, e)
		}
		g.parent[g.find(g.from[e])] = g.find(g.to[e])
	}
}

// pair is an agent that waits for another; edge is the most upstream question between them.
type pair struct{ to, edge int32 }

// pairs lists the agents that each agent waits for, in the order of names.
func (g *cycleGraph) pairs() [][]pair {
	out := make([][]pair, len(g.agents))
	for e := range g.from {
		from, to := g.from[e], g.to[e]
		out[from] = append(out[from], pair{to, int32(e)})
	}
	for i, list := range out {
		slices.SortStableFunc(list, func(a, b pair) int { return strings.Compare(g.agents[a.to], g.agents[b.to]) })
		out[i] = slices.CompactFunc(list, func(a, b pair) bool { return a.to == b.to })
	}
	return out
}

// ring returns the shortest cycle that edge e closes with edges that are more upstream; ties are decided by the names
// of the agents. It begins with the asker of e and follows the questions.
func (g *cycleGraph) ring(e int32, pairs [][]pair) []string {
	start, goal := g.to[e], g.from[e]
	clear(g.predecessor)
	g.predecessor[start] = start + 1
	queue := append(g.queue[:0], start)
	for i := 0; g.predecessor[goal] == 0; i++ {
		for _, p := range pairs[queue[i]] {
			if g.predecessor[p.to] == 0 && p.edge < e {
				g.predecessor[p.to] = queue[i] + 1
				queue = append(queue, p.to)
			}
		}
	}
	g.queue = queue
	way := []string{g.agents[goal]}
	for v := goal; v != start; v = g.predecessor[v] - 1 {
		way = append(way, g.agents[g.predecessor[v]-1])
	}
	slices.Reverse(way[1:])
	return way
}

// search finds the components of a graph of edges, whose ends the function returns; it sets component.
func (g *cycleGraph) search(edges []int32, ends func(e int32) (from, to int32)) {
	for _, e := range edges {
		v, w := ends(e)
		g.forget(v)
		g.forget(w)
	}
	for _, e := range edges {
		v, w := ends(e)
		g.out[v] = append(g.out[v], w)
	}
	for _, e := range edges {
		v, _ := ends(e)
		g.components.Search(uint32(v), g.next, func(nodes []uint32) {
			for _, node := range nodes {
				g.component[node] = int32(nodes[0])
			}
		})
	}
}

func (g *cycleGraph) forget(v int32) {
	g.out[v] = g.out[v][:0]
	g.components.Forget(uint32(v))
}

func (g *cycleGraph) next(v uint32, at *int) (uint32, bool) {
	if *at >= len(g.out[v]) {
		return 0, false
	}
	*at++
	return uint32(g.out[v][*at-1]), true
}

func ringMessage(ring []string) string {
	const shown = 8
	names := ring
	if len(ring) > shown {
		names = append(slices.Clone(ring[:shown]), fmt.Sprintf("%d more", len(ring)-shown))
	}
	return fmt.Sprintf("blocking questions wait for each other: %s, %s", strings.Join(names, ", "), ring[0])
}
