package graph_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"reconcile.dev/reconcile/vectors/graph"
)

// randomChange removes and replaces some nodes, withdraws what a file states, and adds nodes and edges.
func randomChange(rng *rand.Rand, m *naive, ids int) graph.Change {
	var c graph.Change
	for range rng.IntN(4) {
		c.Remove = append(c.Remove, randomNode(rng, rng.IntN(ids)).ID)
	}
	if rng.IntN(4) == 0 {
		c.Retract = append(c.Retract, randomSource(rng))
	}
	byID := maps.Clone(m.nodes)
	for range rng.IntN(5) {
		n := randomNode(rng, rng.IntN(ids))
		if !slices.ContainsFunc(c.Nodes, func(o graph.Node) bool { return o.ID == n.ID }) {
			c.Nodes, byID[n.ID] = append(c.Nodes, n), n
		}
	}
	for range rng.IntN(12) {
		c.Edges = append(c.Edges, randomEdge(rng, ids, byID))
	}
	if rng.IntN(4) == 0 {
		few := randomParts(rng, ids, 40)
		c.Provenances, c.Conflicts = few.Provenances, few.Conflicts
	}
	return c
}

// TestWithAgainstRebuild: after any number of changes a graph has what the naive one has, and answers, walks and bytes
// are those of a graph that is built anew.
func TestWithAgainstRebuild(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(21, 22))
	for range 12 {
		const ids = 36
		p := randomParts(rng, ids-6, rng.IntN(150))
		g, m := build(p), newNaive(p)
		for range 12 {
			before, text := g, describe(g)
			c := randomChange(rng, m, ids)
			g, _ = g.With(c)
			m.change(c)
			checkAgainst(t, g, m)
			again := build(m.parts())
			if describe(g) != describe(again) {
				t.Fatalf("after a change:\n%s\nbuilt anew:\n%s", describe(g), describe(again))
			}
			if walks(g) != walks(again) {
				t.Fatalf("walks after a change:\n%s\nbuilt anew:\n%s", walks(g), walks(again))
			}
			if !bytes.Equal(g.AppendTo(nil), again.AppendTo(nil)) {
				t.Fatal("the bytes after a change are not those of a graph that is built anew")
			}
			if describe(before) != text {
				t.Fatal("the change changed the graph that it came of")
			}
			if err := g.Verify(); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// walks are the answers of all that walks, by ids.
func walks(g *graph.Graph) string {
	var b strings.Builder
	refs := slices.Collect(g.All())
	for i, r := range refs {
		for _, first := range []bool{false, true} {
			visited, _ := g.Walk([]graph.Ref{r}, graph.Reach{Depth: 2, DepthFirst: first})
			for _, v := range visited {
				fmt.Fprint(&b, g.ID(v.Node), " ", g.ID(v.From), " ", v.Depth, ", ")
			}
		}
		to := refs[(i*7+3)%len(refs)]
		path, _ := g.ShortestPath(r, to, graph.Filter{})
		fmt.Fprintln(&b, idsOf(g, path.Nodes), path.Weight)
		paths, more, _ := g.Paths(graph.Route{From: r, To: []graph.Ref{to}, MaxLength: 3})
		for _, p := range paths {
			fmt.Fprintln(&b, idsOf(g, p.Nodes), p.Weight, more)
		}
		results, _ := g.Expand([]graph.Seed{{r, 0.9}, {to, 0.4}}, graph.Expansion{})
		for _, x := range results {
			fmt.Fprintln(&b, g.ID(x.Node), x.GraphScore, x.FinalScore, idsOf(g, wayTo(x)))
			for _, s := range x.Steps() {
				fmt.Fprint(&b, " ", g.Edge(s))
			}
		}
	}
	for _, group := range g.Cycles(graph.Filter{}) {
		fmt.Fprintln(&b, idsOf(g, group))
	}
	return b.String()
}

func TestReplacedNodesKeepTheirPlace(t *testing.T) {
	t.Parallel()
	g := build(lines("a calls b", "c calls b", "b calls d"))
	b := ref(t, g, "b")
	g, refused := g.With(graph.Change{Remove: []string{"b", "none"}, Parts: graph.Parts{
		Nodes: []graph.Node{{ID: "b", Type: graph.Method, Name: "new"}, {ID: "e", Type: graph.Function}},
		Edges: []graph.Edge{{From: "b", To: "e", Type: graph.Calls}, {From: "b", To: "gone", Type: graph.Calls}},
	}})
	if len(refused) != 1 || ref(t, g, "b") != b || g.Node(b).Name != "new" {
		t.Errorf("b is %+v, refused %v", g.Node(b), refused)
	}
	if got := fmt.Sprint(incoming(g, b), g.Outgoing(b)); got != "[{a b calls 1 } {c b calls 1 }] [{b e calls 1 }]" {
		t.Error(got)
	}
	g, _ = g.With(graph.Change{Remove: []string{"b", "b"}})
	if _, ok := g.Find("b"); ok || g.Type(b) != 0 || g.Edges() != 0 || g.Nodes() != 4 {
		t.Errorf("b is still there, or not all of it went: %d nodes, %d edges", g.Nodes(), g.Edges())
	}
	g, _ = g.With(graph.Change{Parts: graph.Parts{Nodes: []graph.Node{{ID: "b", Type: graph.Function}}}})
	if ref(t, g, "b") != b || g.Changed() == 0 {
		t.Error("b came back to another place")
	}
}

// TestReadersBesideWriter is for the race detector: graphs are read while others are made of them.
func TestReadersBesideWriter(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(23, 24))
	p := randomParts(rng, 40, 200)
	m := newNaive(p)
	var current atomic.Pointer[graph.Graph]
	current.Store(build(p))
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				exercise(current.Load())
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	for range 30 {
		c := randomChange(rng, m, 44)
		g, _ := current.Load().With(c)
		m.change(c)
		current.Store(g)
	}
	close(stop)
	readers.Wait()
	if describe(current.Load()) != describe(build(m.parts())) {
		t.Error("after changes beside readers the graph is another")
	}
}
