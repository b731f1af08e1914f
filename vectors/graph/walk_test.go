package graph_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"reconcile.dev/reconcile/vectors/graph"
)

// exercise asks a graph everything, whatever it answers.
func exercise(g *graph.Graph) {
	var some []graph.Ref
	for r := range g.All() {
		if some = append(some, r); len(some) == 5 {
			break
		}
	}
	_ = describe(g)
	for i, r := range some {
		for _, first := range []bool{false, true} {
			g.Walk(some, graph.Reach{Depth: 3, DepthFirst: first})
		}
		to := some[len(some)-1-i]
		if p, ok := g.ShortestPath(r, to, graph.Filter{}); ok {
			for _, s := range p.Steps {
				g.Edge(s)
			}
		}
		g.Component(r, graph.Filter{}, 10)
		_, _, _ = g.Paths(graph.Route{From: r, To: []graph.Ref{to}, MaxLength: 3})
		_, _ = g.Expand([]graph.Seed{{Node: r, Score: 0.9}, {Node: to, Score: 0.5}}, graph.Expansion{Depth: 3})
	}
	g.Cycles(graph.Filter{})
	if len(some) > 0 {
		id := g.ID(some[0])
		with, _ := g.With(graph.Change{Remove: []string{id}, Retract: []string{"state/s1.yaml"},
			Parts: graph.Parts{Nodes: []graph.Node{{ID: "new", Type: graph.File}}}})
		_ = describe(with)
	}
	_ = g.Verify()
}

func TestWalkAgainstNaive(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(11, 12))
	for range 200 {
		p := randomParts(rng, 30, 20+rng.IntN(120))
		g, m := build(p), newNaive(p)
		ids := m.ids()
		start, depth, f := ids[rng.IntN(len(ids))], rng.IntN(5), randomFilter(rng)
		far := depth
		if far == 0 {
			far = len(ids)
		}
		want := m.within(start, far, f)
		for _, first := range []bool{false, true} {
			visited, more := g.Walk([]graph.Ref{ref(t, g, start)}, graph.Reach{Filter: f, Depth: depth, DepthFirst: first})
			if more || len(visited) != len(want) {
				t.Fatalf("%d visited, want %d (depth first %v, depth %d)", len(visited), len(want), first, depth)
			}
			checkWalk(t, g, m, f, visited, want, first)
			limit := 1 + rng.IntN(len(want))
			some, more := g.Walk([]graph.Ref{ref(t, g, start)}, graph.Reach{Filter: f, Depth: depth, DepthFirst: first, Max: limit})
			if !slices.Equal(some, visited[:limit]) || more != (limit < len(want)) {
				t.Fatalf("at most %d: %v, more %v, want the first of %v", limit, some, more, visited)
			}
		}
	}
}

// checkWalk: everything is visited once, from where an edge leads there; breadth first by the shortest ways.
func checkWalk(t *testing.T, g *graph.Graph, m *naive, f graph.Filter, visited []graph.Visit, want map[string]int, first bool) {
	t.Helper()
	depths := map[graph.Ref]int{}
	for i, v := range visited {
		id := g.ID(v.Node)
		if _, again := depths[v.Node]; again {
			t.Fatalf("%s is visited twice", id)
		}
		depths[v.Node] = v.Depth
		shortest, ok := want[id]
		if !ok || v.Depth < shortest || !first && v.Depth != shortest {
			t.Fatalf("%s at depth %d, want %d (%v)", id, v.Depth, shortest, ok)
		}
		if i == 0 {
			continue
		}
		if _, before := depths[v.From]; !before || !slices.Contains(m.neighbours(g.ID(v.From), f), id) {
			t.Fatalf("%s is visited from %s", id, g.ID(v.From))
		}
		if !first && visited[i-1].Depth > v.Depth {
			t.Fatal("a nearer node is visited later")
		}
	}
}

// TestDepthFirst: a diamond with a tail, walked to the end of each way.
func TestDepthFirst(t *testing.T) {
	t.Parallel()
	g := build(lines("a calls b", "a calls c", "b calls d", "c calls d", "d calls e", "e calls a"))
	out := graph.Filter{Direction: graph.Out}
	for _, c := range []struct {
		reach graph.Reach
		want  string
	}{
		{graph.Reach{Filter: out}, "a b c d e"},
		{graph.Reach{Filter: out, DepthFirst: true}, "a b d e c"},
		{graph.Reach{Filter: out, DepthFirst: true, Depth: 2}, "a b d c"},
		{graph.Reach{Filter: graph.Filter{Direction: graph.In}, Depth: 1}, "a e"},
		{graph.Reach{Filter: out, Max: 2}, "a b"},
	} {
		visited, _ := g.Walk([]graph.Ref{ref(t, g, "a")}, c.reach)
		var got []string
		for _, v := range visited {
			got = append(got, g.ID(v.Node))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%+v: %v, want %s", c.reach, got, c.want)
		}
	}
}

// lines makes parts of lines "from type to", the nodes functions.
func lines(list ...string) graph.Parts {
	var p graph.Parts
	seen := map[string]bool{}
	for _, line := range list {
		f := strings.Fields(line)
		kind, err := graph.ParseEdgeType(f[1])
		if err != nil {
			panic(err)
		}
		for _, id := range []string{f[0], f[2]} {
			if !seen[id] {
				p.Nodes = append(p.Nodes, graph.Node{ID: id, Type: graph.Function})
				seen[id] = true
			}
		}
		p.Edges = append(p.Edges, graph.Edge{From: f[0], To: f[2], Type: kind})
	}
	return p
}

func TestCyclesAgainstNaive(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(17, 18))
	found := 0
	for range 300 {
		p := randomParts(rng, 25, rng.IntN(90))
		g, m := build(p), newNaive(p)
		f := randomFilter(rng)
		got := g.Cycles(f)
		want := m.cycles(f)
		var names []string
		for _, group := range got {
			names = append(names, strings.Join(idsOf(g, group), " "))
		}
		if !slices.Equal(names, want) {
			t.Fatalf("cycles %q, want %q", names, want)
		}
		found += len(want)
		for _, group := range got {
			checkRound(t, g, group, f)
		}
	}
	if found < 100 {
		t.Errorf("only %d cycles were found", found)
	}
}

// checkRound checks that the way round a group is one, and that none is shorter.
func checkRound(t *testing.T, g *graph.Graph, group []graph.Ref, f graph.Filter) {
	t.Helper()
	p := g.Round(group, f)
	f.Direction = graph.Out
	shortest := len(group)
	for _, e := range g.Outgoing(group[0]) {
		if len(f.Edges) > 0 && !slices.Contains(f.Edges, e.Type) {
			continue
		}
		if back, ok := g.ShortestPath(ref(t, g, e.To), group[0], f); ok && slices.Contains(group, back.Nodes[0]) {
			shortest = min(shortest, 1+len(back.Steps))
		}
	}
	last := len(p.Nodes) - 1
	if len(p.Steps) != shortest || p.Nodes[0] != group[0] || p.Nodes[last] != group[0] {
		t.Fatalf("the way round %v is %v, and there is one of %d edges", idsOf(g, group), idsOf(g, p.Nodes), shortest)
	}
	for i, s := range p.Steps {
		if s.From != p.Nodes[i] || s.To != p.Nodes[i+1] || !slices.Contains(group, s.To) {
			t.Fatalf("step %d of the way round %v is from %s to %s", i, idsOf(g, group), g.ID(s.From), g.ID(s.To))
		}
	}
}

// cycles are groups of ids that reach each other.
func (m *naive) cycles(f graph.Filter) []string {
	f.Direction = graph.Out
	reach := map[string]map[string]int{}
	for _, id := range m.ids() {
		if m.enters(id, f) {
			reach[id] = m.within(id, len(m.nodes), f)
		}
	}
	var out []string
	for _, id := range m.ids() {
		if reach[id] == nil {
			continue
		}
		var group []string
		for other := range reach[id] {
			if _, back := reach[other][id]; back {
				group = append(group, other)
			}
		}
		sort.Strings(group)
		if group[0] == id && (len(group) > 1 || slices.Contains(m.neighbours(id, f), id)) {
			out = append(out, strings.Join(group, " "))
		}
	}
	return out
}

// TestDeep: a way of 50,000 edges needs no deep stack.
func TestDeep(t *testing.T) {
	t.Parallel()
	var p graph.Parts
	const n = 50_000
	for i := range n {
		p.Nodes = append(p.Nodes, graph.Node{ID: fmt.Sprintf("n%06d", i), Type: graph.Function})
		p.Edges = append(p.Edges, graph.Edge{From: fmt.Sprintf("n%06d", i), To: fmt.Sprintf("n%06d", (i+1)%n), Type: graph.Calls})
	}
	g := build(p)
	first, last := ref(t, g, "n000000"), ref(t, g, "n049999")
	out := graph.Filter{Direction: graph.Out}
	if path, ok := g.ShortestPath(first, last, out); !ok || len(path.Nodes) != n {
		t.Errorf("a path of %d nodes", len(path.Nodes))
	}
	if visited, _ := g.Walk([]graph.Ref{first}, graph.Reach{Filter: out, DepthFirst: true}); len(visited) != n || visited[n-1].Depth != n-1 {
		t.Errorf("%d visited", len(visited))
	}
	if groups := g.Cycles(out); len(groups) != 1 || len(groups[0]) != n {
		t.Errorf("%d groups", len(groups))
	}
	if nodes, more := g.Component(last, graph.Filter{}, 1000); len(nodes) != 1000 || !more {
		t.Errorf("%d nodes, more %v", len(nodes), more)
	}
}
