package graph_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"reconcile.dev/reconcile/vectors/graph"
)

// sourceLike makes parts like those of a source tree: files that define functions, which call others, mostly near ones
// and now and then those that everybody calls, documents about them and sessions that modified them; five edges for
// each node.
func sourceLike(nodes int) graph.Parts {
	rng := rand.New(rand.NewPCG(27, uint64(nodes)))
	var p graph.Parts
	name := func(i int) string { return fmt.Sprintf("dir%03d/file%05d.go:Function%d", i/500, i/10, i) }
	for i := range nodes {
		n := graph.Node{ID: name(i), Type: graph.Function, Name: fmt.Sprint("Function", i), Line: i % 900,
			Path: fmt.Sprintf("dir%03d/file%05d.go", i/500, i/10), Digest: rng.Uint64(), Labels: []string{"kind=func", "lang=go"}}
		switch i % 10 {
		case 0:
			n.Type = graph.File
		case 1:
			n.Type = graph.Doc
		case 2:
			n.Type = graph.Task
		}
		p.Nodes = append(p.Nodes, n)
	}
	edge := func(from, to int, t graph.EdgeType) {
		p.Edges = append(p.Edges, graph.Edge{From: name(from), To: name(to), Type: t})
	}
	for i := range nodes {
		for range 4 {
			near := min(nodes-1, max(0, i+rng.IntN(400)-200))
			switch {
			case i%10 == 1:
				edge(i, near/10*10+3, graph.Documents)
			case i%10 == 2:
				edge(i, near/10*10, graph.Modified)
			case rng.IntN(8) == 0:
				edge(i, int(rng.ExpFloat64()*100)/10*10%(nodes/10*10)+5, graph.Calls)
			default:
				edge(i, near/10*10+4, graph.Calls)
			}
		}
		if i%10 > 2 {
			edge(i/10*10, i, graph.Defines)
		}
	}
	return p
}

var sizes = []int{10_000, 100_000}

func BenchmarkBuild(b *testing.B) {
	for _, n := range sizes {
		p := sourceLike(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				build(p)
			}
		})
	}
}

func BenchmarkOpen(b *testing.B) {
	for _, n := range sizes {
		data := build(sourceLike(n)).AppendTo(nil)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportMetric(float64(len(data)), "size-B")
			for b.Loop() {
				if _, err := graph.Open(data); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// each runs a benchmark from changing nodes of graphs of all sizes.
func each(b *testing.B, run func(g *graph.Graph, from []graph.Ref) int) {
	for _, n := range sizes {
		g := build(sourceLike(n))
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.ReportAllocs()
			rng, count, i := rand.New(rand.NewPCG(29, 30)), 0, 0
			for b.Loop() {
				from := make([]graph.Ref, 20)
				for j := range from {
					from[j] = graph.Ref(rng.IntN(n))
				}
				count += run(g, from)
				i++
			}
			b.ReportMetric(float64(count)/float64(i), "nodes/op")
		})
	}
}

// near counts what is up to three edges away.
func near(g *graph.Graph, r graph.Ref, f graph.Filter) int {
	visited, _ := g.Walk([]graph.Ref{r}, graph.Reach{Filter: f, Depth: 3})
	return len(visited) - 1
}

// BenchmarkNeighbors goes three edges far in both directions.
func BenchmarkNeighbors(b *testing.B) {
	each(b, func(g *graph.Graph, from []graph.Ref) int { return near(g, from[0], graph.Filter{}) })
}

func BenchmarkNeighborsOut(b *testing.B) {
	each(b, func(g *graph.Graph, from []graph.Ref) int {
		return near(g, from[0], graph.Filter{Direction: graph.Out, Edges: []graph.EdgeType{graph.Calls}})
	})
}

func BenchmarkShortestPath(b *testing.B) {
	each(b, func(g *graph.Graph, from []graph.Ref) int {
		p, _ := g.ShortestPath(from[0], from[1], graph.Filter{})
		return len(p.Nodes)
	})
}

// BenchmarkExpand expands twenty seeds.
func BenchmarkExpand(b *testing.B) {
	for _, depth := range []int{2, 3} {
		b.Run(fmt.Sprint("depth", depth), func(b *testing.B) {
			each(b, func(g *graph.Graph, from []graph.Ref) int {
				var seeds []graph.Seed
				for i, r := range from {
					seeds = append(seeds, graph.Seed{Node: r, Score: 0.9 - float64(i)/50})
				}
				results, err := g.Expand(seeds, graph.Expansion{Depth: depth})
				if err != nil {
					b.Fatal(err)
				}
				return len(results)
			})
		})
	}
}

// BenchmarkWith replaces a file and its functions, with their edges, again and again.
func BenchmarkWith(b *testing.B) {
	for _, n := range sizes {
		p := sourceLike(n)
		g := build(p)
		c := graph.Change{Parts: graph.Parts{Nodes: p.Nodes[n/2 : n/2+10]}}
		for _, node := range c.Nodes {
			r, _ := g.Find(node.ID)
			c.Edges = append(c.Edges, g.Outgoing(r)...)
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				g.With(c)
			}
		})
	}
}

func BenchmarkStats(b *testing.B) {
	each(b, func(g *graph.Graph, _ []graph.Ref) int { return g.Stats().Nodes })
}
