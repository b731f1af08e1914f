package graph_test

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/vectors/graph"
)

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
			back := func(from string) int { return map[bool]int{true: 0, false: 1}[from == a] }
			earlier := cmp.Or(cmp.Compare(back(k.from), back(e.From)), cmp.Compare(k.kind, e.Type)) < 0
			if passes && along && (w > e.Weight || w == e.Weight && earlier) {
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
