package graph_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"reconcile.dev/reconcile/vectors/graph"
)

// TestSelect: a set has the nodes that one by one say that they are of the type and have the labels, also after changes.
func TestSelect(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(31, 32))
	const ids = 60
	p := randomParts(rng, ids-10, 50)
	g, m := build(p), newNaive(p)
	chosen := 0
	for range 40 {
		types := []graph.NodeType{graph.NodeType(1 + rng.IntN(12)), graph.NodeType(1 + rng.IntN(12)), graph.Function}
		var labels []string
		for _, n := range m.nodes {
			if len(n.Labels) > 0 && rng.IntN(20) == 0 {
				labels = n.Labels[rng.IntN(len(n.Labels)):]
			}
		}
		set := g.Select(func(t graph.NodeType) bool { return slices.Contains(types, t) }, labels)
		for r := range g.All() {
			n := g.Node(r)
			want := slices.Contains(types, n.Type)
			for _, l := range labels {
				want = want && slices.Contains(n.Labels, l)
			}
			if set.Has(r) != want {
				t.Fatalf("of types %v with labels %q: %s %v %q: %v", types, labels, n.ID, n.Type, n.Labels, set.Has(r))
			}
			if want && len(labels) > 0 {
				chosen++
			}
		}
		if set.Has(graph.Ref(1 << 20)) {
			t.Error("a node that there is not is in the set")
		}
		c := randomChange(rng, m, ids)
		g, _ = g.With(c)
		m.change(c)
	}
	if chosen == 0 {
		t.Error("no node had the labels that were asked for")
	}
}

func BenchmarkSelect(b *testing.B) {
	g := build(sourceLike(100_000))
	for _, c := range []struct {
		name   string
		labels []string
	}{{"types", nil}, {"labels", []string{"lang=go"}}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				g.Select(func(t graph.NodeType) bool { return t == graph.Function }, c.labels)
			}
		})
	}
}
