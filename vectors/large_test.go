package vectors_test

import (
	"fmt"
	"testing"

	"reconcile.dev/reconcile/vectors"
	"reconcile.dev/reconcile/vectors/graph"
)

// An index that is large enough for lists of its vectors, which puts them into another order, finds what was asked for.
func TestLargeIndex(t *testing.T) {
	t.Parallel()
	const texts, perInput = 20_100, 300
	var inputs []vectors.Input
	for from := 0; from < texts; from += perInput {
		b := &graph.PartBuilder{}
		for i := from; i < from+perInput; i++ {
			id := fmt.Sprintf("observation/%d", i)
			b.Add(graph.Item{Node: graph.Node{ID: id, Type: graph.Observation, Name: id}, Title: id,
				Body: fmt.Sprintf("word%d other%d", i, i/7)})
		}
		inputs = append(inputs, vectors.Input{Name: fmt.Sprint("memory:", from), Part: b.Part})
	}
	o := vectors.Options{Dims: 32, Embedder: &bag{dims: 32, model: "bag"}}
	x := open(t, build(t, inputs, o), nil, o)
	if err := x.Verify(); err != nil {
		t.Fatal(err)
	}
	for _, i := range []int{0, 77, 20_000} {
		id := fmt.Sprintf("observation/%d", i)
		a, err := x.Search(t.Context(), vectors.Query{
			Text: fmt.Sprintf("%s\nword%d other%d", id, i, i/7), Mode: vectors.Vector, Limit: 10, Exact: true,
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(a.Results) == 0 || a.Results[0].ID != id {
			t.Errorf("%s is not the nearest: %d results", id, len(a.Results))
		}
	}
}
