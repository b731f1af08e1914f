package graph_test

import (
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"reconcile.dev/reconcile/vectors/graph"
)

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
		same := func(a, b graph.Result) bool {
			return a.Node == b.Node && a.GraphScore == b.GraphScore && a.FinalScore == b.FinalScore && slices.Equal(a.Steps(), b.Steps())
		}
		if err != nil || !slices.EqualFunc(few, results[:min(3, len(results))], same) {
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
		if math.Abs(want[id]-r.FinalScore) > 1e-6 {
			t.Fatalf("%s has the score %v, want %v", id, r.FinalScore, want[id])
		}
		if i > 0 && (got[i-1].FinalScore < r.FinalScore || got[i-1].FinalScore == r.FinalScore && g.ID(got[i-1].Node) > id) {
			t.Fatalf("%s stands after %s", id, g.ID(got[i-1].Node))
		}
		way := wayTo(r)
		if seeds[g.ID(way[0])] == 0 || seeds[id] > 0 && len(way) != 1 {
			t.Fatalf("%s was found by the path %v", id, idsOf(g, way))
		}
		checkSteps(t, g, m, f, way, r.Steps())
	}
}

// wayTo are the nodes that the steps of a result come to, which end at it.
func wayTo(r graph.Result) []graph.Ref {
	way := []graph.Ref{r.Node}
	for _, s := range slices.Backward(r.Steps()) {
		next := s.From
		if next == way[0] {
			next = s.To
		}
		way = slices.Insert(way, 0, next)
	}
	return way
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
	if err != nil || len(results) != 3 || math.Abs(results[0].FinalScore-0.7) > 1e-6 || len(results[2].Steps()) != 2 {
		t.Errorf("%+v, %v", results, err)
	}
	results, err = g.Expand(seeds, graph.Expansion{MinScore: 0.1})
	if err != nil || len(results) != 2 {
		t.Errorf("%d results that score enough, want 2: %v", len(results), err)
	}
}
