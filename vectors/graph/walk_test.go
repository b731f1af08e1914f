package graph_test

import (
	"fmt"
	"math"
	"math/bits"
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
		g.Component(r, 10)
		_, _, _ = g.Paths(graph.Route{From: r, To: []graph.Ref{to}, MaxLength: 3})
		_, _ = g.Expand([]graph.Seed{{Node: r, Score: 0.9}, {Node: to, Score: 0.5}}, graph.Expansion{Depth: 3})
	}
	g.Cycles(graph.Filter{})
	if len(some) > 0 {
		id := g.ID(some[0])
		with, _ := g.With(graph.Change{Remove: []string{id}, Withdraw: []string{"state/s1.yaml"},
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
		near := g.Neighbors(ref(t, g, start), 2, f)
		if len(near) != len(m.within(start, 2, f))-1 {
			t.Fatalf("%d neighbours, want %d", len(near), len(m.within(start, 2, f))-1)
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

func TestShortestPathAgainstNaive(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(13, 14))
	found := 0
	for range 600 {
		p := randomParts(rng, 24, 10+rng.IntN(60))
		g, m := build(p), newNaive(p)
		ids, f := m.ids(), randomFilter(rng)
		from, to := ids[rng.IntN(len(ids))], ids[rng.IntN(len(ids))]
		got, ok := g.ShortestPath(ref(t, g, from), ref(t, g, to), f)
		want := m.shortest(from, to, f)
		if names := strings.Join(idsOf(g, got.Nodes), ">"); names != want || ok != (want != "") {
			t.Fatalf("from %s to %s: %q (%v), want %q", from, to, names, ok, want)
		}
		if ok {
			found++
			checkSteps(t, g, m, f, got.Nodes, got.Steps)
		}
	}
	if found < 100 {
		t.Errorf("only %d paths were found", found)
	}
}

// shortest is the first of the shortest paths: level by level, for each id the first way to it.
func (m *naive) shortest(from, to string, f graph.Filter) string {
	seen, front := map[string]bool{from: true}, map[string][]string{from: {from}}
	for len(front) > 0 && front[to] == nil {
		next := map[string][]string{}
		for id, way := range front {
			for _, n := range m.neighbours(id, f) {
				longer := append(slices.Clone(way), n)
				if !seen[n] && (n == to || m.enters(n, f)) && (next[n] == nil || slices.Compare(longer, next[n]) < 0) {
					next[n] = longer
				}
			}
		}
		for id := range next {
			seen[id] = true
		}
		front = next
	}
	return strings.Join(front[to], ">")
}

// checkSteps: each step is the heaviest edge between its nodes that the filter lets through.
func checkSteps(t *testing.T, g *graph.Graph, m *naive, f graph.Filter, nodes []graph.Ref, steps []graph.Step) {
	t.Helper()
	if len(steps) != len(nodes)-1 {
		t.Fatalf("%d steps for %d nodes", len(steps), len(nodes))
	}
	for i, s := range steps {
		e := g.Edge(s)
		if m.edges[edgeKey{e.From, e.To, e.Type, e.Source}] != e.Weight || e.Weight != s.Weight || e.Type != s.Type {
			t.Fatalf("step %+v is the edge %+v", s, e)
		}
		a, b := g.ID(nodes[i]), g.ID(nodes[i+1])
		ahead := e.From == a && e.To == b
		if !ahead && !(e.From == b && e.To == a) || ahead && f.Direction == graph.In && a != b || !ahead && f.Direction == graph.Out {
			t.Fatalf("the step from %s to %s is %+v", a, b, e)
		}
		for k, w := range m.edges {
			passes := len(f.Edges) == 0 || slices.Contains(f.Edges, k.kind)
			along := k.from == a && k.to == b && f.Direction != graph.In || k.from == b && k.to == a && f.Direction != graph.Out
			if passes && along && w > e.Weight {
				t.Fatalf("the step from %s to %s is %+v, but %+v weighs %v", a, b, e, k, w)
			}
		}
	}
}

func TestPathsAgainstNaive(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(15, 16))
	found := 0
	for range 400 {
		p := randomParts(rng, 20, 10+rng.IntN(50))
		g, m := build(p), newNaive(p)
		ids, f := m.ids(), randomFilter(rng)
		from, to := ids[rng.IntN(len(ids))], ids[rng.IntN(len(ids))]
		if from == to {
			continue
		}
		r := graph.Route{Filter: f, From: ref(t, g, from), MaxLength: 4, MaxResults: 1 + rng.IntN(40)}
		given, ends := func(string) bool { return false }, func(id string) bool { return m.enters(id, f) }
		if rng.IntN(2) == 0 {
			r.To = []graph.Ref{ref(t, g, to)}
			given = func(id string) bool { return id == to }
			ends = given
		}
		if rng.IntN(3) == 0 {
			r.Through = []graph.Domain{graph.Domains[rng.IntN(3)], graph.Domains[rng.IntN(3)], graph.Domains[rng.IntN(3)]}
		}
		if rng.IntN(3) == 0 {
			r.MinWeight = 0.4
		}
		want := m.wanted(m.paths(from, ends, f, given, r.MaxLength), r)
		got, more, err := g.Paths(r)
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, path := range got {
			names = append(names, strings.Join(idsOf(g, path.Nodes), ">"))
			checkSteps(t, g, m, f, path.Nodes, path.Steps)
			found++
		}
		if !slices.Equal(names, want[:min(len(want), r.MaxResults)]) || more != (len(want) > r.MaxResults) {
			t.Fatalf("%+v\n%s\nmore %v, want\n%s", r, strings.Join(names, "\n"), more, strings.Join(want, "\n"))
		}
	}
	if found < 300 {
		t.Errorf("only %d paths were found", found)
	}
}

// wanted are the paths that go through the domains and weigh enough.
func (m *naive) wanted(paths []string, r graph.Route) []string {
	var out []string
	for _, path := range paths {
		ids := strings.Split(path, ">")
		var domains []graph.Domain
		weight := 1.0
		for i, id := range ids {
			domains = append(domains, m.nodes[id].Type.Domain())
			if i > 0 {
				weight *= m.heaviest(ids[i-1], id, r.Filter)
			}
		}
		through := slices.Compact(slices.Clone(r.Through))
		if (len(through) == 0 || slices.Equal(slices.Compact(domains), through)) && weight >= r.MinWeight {
			out = append(out, path)
		}
	}
	return out
}

func (m *naive) heaviest(a, b string, f graph.Filter) float64 {
	most := float32(0)
	for k, w := range m.edges {
		passes := len(f.Edges) == 0 || slices.Contains(f.Edges, k.kind)
		if passes && (k.from == a && k.to == b && f.Direction != graph.In || k.from == b && k.to == a && f.Direction != graph.Out) {
			most = max(most, w)
		}
	}
	return float64(most)
}

func TestPathsAcrossDomains(t *testing.T) {
	t.Parallel()
	g, refused := graph.Build(graph.Parts{
		Nodes: []graph.Node{
			{ID: "a.go", Type: graph.File}, {ID: "b.go", Type: graph.File}, {ID: "docs/a.md", Type: graph.Doc},
			{ID: "session/s", Type: graph.Session}, {ID: "failure/f", Type: graph.Failure}, {ID: "task/t", Type: graph.Task},
		},
		Edges: []graph.Edge{
			{From: "a.go", To: "docs/a.md", Type: graph.References}, {From: "session/s", To: "docs/a.md", Type: graph.UsedPattern, Weight: 0.5},
			{From: "task/t", To: "failure/f", Type: graph.Resolves}, {From: "task/t", To: "b.go", Type: graph.Modified},
			{From: "session/s", To: "a.go", Type: graph.Modified},
		},
	})
	if len(refused) > 0 {
		t.Fatal(refused)
	}
	for _, c := range []struct {
		from  string
		route graph.Route
		want  string
	}{
		{"a.go", graph.Route{Through: []graph.Domain{graph.Code, graph.Academic, graph.History}}, "a.go>docs/a.md>session/s 0.5"},
		{"failure/f", graph.Route{Through: []graph.Domain{graph.History, graph.Code}}, "failure/f>task/t>b.go 1"},
		{"failure/f", graph.Route{Ends: []graph.NodeType{graph.Task}}, "failure/f>task/t 1"},
		{"failure/f", graph.Route{Through: []graph.Domain{graph.Code}}, ""},
	} {
		c.route.From = ref(t, g, c.from)
		paths, _, err := g.Paths(c.route)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, p := range paths {
			got = append(got, fmt.Sprintf("%s %v", strings.Join(idsOf(g, p.Nodes), ">"), p.Weight))
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("from %s: %v, want %s", c.from, got, c.want)
		}
	}
}

// TestPathsEnd: of a graph with more paths than anybody can list, the search ends.
func TestPathsEnd(t *testing.T) {
	t.Parallel()
	var list []string
	for i := range 40 {
		for j := range 40 {
			if i != j {
				list = append(list, fmt.Sprintf("n%02d calls n%02d", i, j))
			}
		}
	}
	list = append(list, "x calls y")
	g := build(lines(list...))
	route := graph.Route{From: ref(t, g, "n00"), To: []graph.Ref{ref(t, g, "n39")}, MaxLength: 16, MinWeight: 0.5}
	if paths, more, err := g.Paths(route); err != nil || len(paths) != 10 || !more {
		t.Errorf("%d paths, more %v, %v", len(paths), more, err)
	}
	route.To = []graph.Ref{ref(t, g, "y")}
	if paths, more, err := g.Paths(route); err != nil || len(paths) != 0 || more {
		t.Errorf("%d paths to what cannot be reached, more %v, %v", len(paths), more, err)
	}
	for _, wrong := range []graph.Route{{MaxLength: 17}, {MinWeight: math.NaN()}, {Through: []graph.Domain{9}}} {
		if _, _, err := g.Paths(wrong); err == nil {
			t.Errorf("%+v is accepted", wrong)
		}
	}
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
	}
	if found < 100 {
		t.Errorf("only %d cycles were found", found)
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
	if nodes, more := g.Component(last, 1000); len(nodes) != 1000 || !more {
		t.Errorf("%d nodes, more %v", len(nodes), more)
	}
}

// naiveExpand is the documented formula, in floating point and without any limits.
func (m *naive) naiveExpand(seeds map[string]float64, depth int, alpha float64, f graph.Filter) map[string]float64 {
	passed := map[graph.EdgeType]float64{graph.Calls: .6, graph.Imports: .35, graph.Defines: .65, graph.Implements: .65,
		graph.Contains: .5, graph.Follows: .4, graph.Causes: .7, graph.Resolves: .8, graph.LedTo: .7, graph.References: .7,
		graph.AppliesTo: .7, graph.Documents: .8, graph.Modified: .55, graph.UsedPattern: .6}
	spread := func(id string) float64 {
		degree := 0
		for k := range m.edges {
			if k.from == id {
				degree++
			}
			if k.to == id {
				degree++
			}
		}
		return 1 + float64(max(0, bits.Len(uint(degree))-1))/4
	}
	level, got := map[string]int{}, map[string]float64{}
	active := map[string]float64{}
	for id, s := range seeds {
		level[id], active[id] = 0, s
	}
	for d := 1; d <= depth; d++ {
		next := map[string]float64{}
		for k, w := range m.edges {
			if len(f.Edges) > 0 && !slices.Contains(f.Edges, k.kind) || k.from == k.to {
				continue
			}
			for _, way := range [][2]string{{k.from, k.to}, {k.to, k.from}} {
				if f.Direction == graph.Out && way[0] != k.from || f.Direction == graph.In && way[0] != k.to {
					continue
				}
				score, ok := active[way[0]]
				at, known := level[way[1]]
				isSeed := known && at == 0
				if !ok || known && !(isSeed && d == 1) || !isSeed && !m.enters(way[1], f) {
					continue
				}
				if amount := score * passed[k.kind] * float64(w) / (spread(way[0]) * spread(way[1])); amount >= 1.0/256 {
					next[way[1]] += amount
				}
			}
		}
		active = map[string]float64{}
		for id, s := range next {
			got[id] += s
			if _, isSeed := seeds[id]; !isSeed {
				active[id], level[id] = min(s, 1), d
			}
		}
	}
	final := map[string]float64{}
	for id := range level {
		final[id] = alpha*seeds[id] + (1-alpha)*min(got[id], 1)
	}
	return final
}

func TestExpandAgainstNaive(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(19, 20))
	for range 300 {
		p := randomParts(rng, 30, 20+rng.IntN(80))
		g, m := build(p), newNaive(p)
		ids, f := m.ids(), randomFilter(rng)
		x := graph.Expansion{Filter: f, Depth: 1 + rng.IntN(3), Alpha: 0.5, Max: len(ids)}
		scores := map[string]float64{}
		var seeds []graph.Seed
		for range 1 + rng.IntN(4) {
			id := ids[rng.IntN(len(ids))]
			scores[id] = max(scores[id], 0.9)
			seeds = append(seeds, graph.Seed{Node: ref(t, g, id), Score: 0.9})
		}
		results, err := g.Expand(seeds, x)
		if err != nil {
			t.Fatal(err)
		}
		checkExpansion(t, g, m, f, results, m.naiveExpand(scores, x.Depth, x.Alpha, f), scores)
		few, err := g.Expand(seeds, graph.Expansion{Filter: f, Depth: x.Depth, Alpha: 0.5, Max: 3})
		if err != nil || fmt.Sprint(few) != fmt.Sprint(results[:min(3, len(results))]) {
			t.Fatalf("the best three are %v, want the first of %v", few, results)
		}
	}
}

func checkExpansion(t *testing.T, g *graph.Graph, m *naive, f graph.Filter, got []graph.Result, want, seeds map[string]float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d results, want %d", len(got), len(want))
	}
	for i, r := range got {
		id := g.ID(r.Node)
		if math.Abs(want[id]-r.FinalScore) > 1e-6 || math.Abs(seeds[id]-r.VectorScore) > 1e-6 {
			t.Fatalf("%s has the score %v (%v), want %v", id, r.FinalScore, r.VectorScore, want[id])
		}
		if i > 0 && (got[i-1].FinalScore < r.FinalScore || got[i-1].FinalScore == r.FinalScore && g.ID(got[i-1].Node) > id) {
			t.Fatalf("%s stands after %s", id, g.ID(got[i-1].Node))
		}
		if seeds[g.ID(r.Path[0])] == 0 || r.Path[len(r.Path)-1] != r.Node || seeds[id] > 0 && len(r.Path) != 1 {
			t.Fatalf("%s was found by the path %v", id, idsOf(g, r.Path))
		}
		checkSteps(t, g, m, f, r.Path, r.Steps)
	}
}

func TestExpandLimits(t *testing.T) {
	t.Parallel()
	g := build(lines("a calls b", "b calls c", "c calls d"))
	a := ref(t, g, "a")
	for _, x := range []graph.Expansion{{Depth: -1}, {Depth: 9}, {Alpha: 1.1}, {Alpha: math.NaN()}, {MinScore: -1}} {
		if _, err := g.Expand(nil, x); err == nil {
			t.Errorf("%+v is accepted", x)
		}
	}
	seeds := []graph.Seed{{a, math.Inf(1)}, {a, 0.2}, {ref(t, g, "d"), math.NaN()}, {99, 1}}
	results, err := g.Expand(seeds, graph.Expansion{})
	if err != nil || len(results) != 3 || results[0].VectorScore != 1 || len(results[2].Path) != 3 {
		t.Errorf("%+v, %v", results, err)
	}
	results, err = g.Expand(seeds, graph.Expansion{MinScore: 0.1})
	if err != nil || len(results) != 2 {
		t.Errorf("%d results that score enough, want 2: %v", len(results), err)
	}
}
