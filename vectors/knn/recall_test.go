package knn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"reconcile.dev/reconcile/state/mutants"
	"reconcile.dev/reconcile/vectors/knn/knntest"
)

// recallOf is the part of the true ten nearest that searches find among the rows that match.
func recallOf(t *testing.T, x *Index, d *knntest.Data, truth [][]knntest.Neighbor, o SearchOptions) float64 {
	t.Helper()
	sum := 0.0
	for q := range d.Queries {
		hits, err := x.Search(d.Query(q), o)
		if err != nil {
			t.Fatal(err)
		}
		if len(hits) != len(truth[q]) {
			t.Fatalf("query %d: %d hits, want %d", q, len(hits), len(truth[q]))
		}
		var rows []uint32
		for _, h := range hits {
			if o.Filter != nil && !o.Filter.Has(h.Slot) {
				t.Fatalf("query %d: %v does not pass", q, h)
			}
			rows = append(rows, uint32(rowOf(h.ID)))
		}
		sum += d.Recall(q, truth[q], rows)
	}
	return sum / float64(d.Queries)
}

func TestRecall(t *testing.T) {
	t.Parallel()
	for _, shape := range []knntest.Shape{knntest.Clustered, knntest.TextLike} {
		for _, from := range []int{1000, DefaultGraphFrom} {
			t.Run(fmt.Sprintf("%v, graph from %d", shape, from), func(t *testing.T) {
				t.Parallel()
				spec := knntest.Spec{Shape: shape, N: 10_000, Queries: 100, Dims: 768, Seed: 3}
				if testing.Short() {
					spec.N, spec.Queries, spec.Dims = 1500, 30, 128
				}
				testRecall(t, spec.Make(), from)
			})
		}
	}
}

func TestRecallOf100000(t *testing.T) {
	t.Parallel()
	if !mutants.All() {
		t.Skip("builds 100,000 vectors twice: set RECONCILE_SWEEP=all")
	}
	for _, shape := range []knntest.Shape{knntest.Clustered, knntest.TextLike} {
		t.Run(shape.String(), func(t *testing.T) {
			testRecall(t, knntest.Spec{Shape: shape, N: 100_000, Queries: 200, Dims: 768, Seed: 4}.Make(), DefaultGraphFrom)
		})
	}
}

// testRecall: what the defaults promise, also behind filters; what is exact is; each vector finds itself.
func testRecall(t *testing.T, d *knntest.Data, graphFrom int) {
	x, err := Build(context.Background(), Options{Dims: d.Dims, GraphFrom: graphFrom}, itemsOf(d), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, percent := range []float64{100, 50, 5, 0.5} {
		passes := func(row uint32) bool { return float64(mix(uint64(row))%1000) < percent*10 }
		truth := d.TruthWhere(10, passes)
		filter := &Bitmap{}
		for slot := range uint32(x.Slots()) {
			if id, ok := x.ID(slot); ok && passes(uint32(rowOf(id))) {
				filter.Add(slot)
			}
		}
		if percent == 100 {
			filter = nil
		}
		for _, c := range []struct {
			o       SearchOptions
			atLeast float64
		}{
			{SearchOptions{Filter: filter}, 0.95},
			{SearchOptions{Filter: filter, Thorough: true}, 0.99},
			{SearchOptions{Filter: filter, Exact: true}, 1},
		} {
			if got := recallOf(t, x, d, truth, c.o); got < c.atLeast {
				t.Errorf("%v %% pass, thorough %v, exact %v: recall %.4f, want %.2f", percent, c.o.Thorough, c.o.Exact, got, c.atLeast)
			}
		}
	}
	for row := 0; row < d.N; row += 1 + d.N/10_000 {
		hits, err := x.Search(d.Vector(row), SearchOptions{K: 1})
		if err != nil || len(hits) != 1 || rowOf(hits[0].ID) != row {
			t.Errorf("vector %d finds %v, %v", row, hits, err)
		}
	}
}

// TestFilterOfOnePart: what passes may be far from a query, or all around it.
func TestFilterOfOnePart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		shape     knntest.Shape
		graphFrom int
	}{{knntest.Uniform, 1000}, {knntest.Clustered, 1000}, {knntest.Duplicates, 1000}, {knntest.Duplicates, DefaultGraphFrom}} {
		shape := c.shape
		d := knntest.Spec{Shape: shape, N: 8000, Queries: 100, Dims: 64, Seed: 8}.Make()
		x, err := Build(context.Background(), Options{Dims: d.Dims, GraphFrom: c.graphFrom}, itemsOf(d), nil)
		if err != nil {
			t.Fatal(err)
		}
		along := make([]float32, d.N) // the first query
		for row := range along {
			for i, c := range d.Vector(row) {
				along[row] += c * d.Query(0)[i]
			}
		}
		sorted := slices.Sorted(slices.Values(along))
		for _, share := range []float64{0.05, 0.15, 0.3, 0.7} {
			for _, near := range []bool{true, false} {
				passes := func(row uint32) bool {
					if near {
						return along[row] > sorted[int(float64(d.N)*(1-share))]
					}
					return along[row] < sorted[int(float64(d.N)*share)]
				}
				truth, filter := d.TruthWhere(10, passes), &Bitmap{}
				for slot := range uint32(x.Slots()) {
					if id, ok := x.ID(slot); ok && passes(uint32(rowOf(id))) {
						filter.Add(slot)
					}
				}
				for thorough, atLeast := range map[bool]float64{false: 0.95, true: 0.99} {
					if got := recallOf(t, x, d, truth, SearchOptions{Filter: filter, Thorough: thorough}); got < atLeast {
						t.Errorf("%v, graph from %d, %v pass, near the first query %v, thorough %v: recall %.4f, want %.2f", shape, c.graphFrom, share, near, thorough, got, atLeast)
					}
				}
			}
		}
	}
}

// TestEqualVectors: many equal vectors neither hide others nor lose each other.
func TestEqualVectors(t *testing.T) {
	t.Parallel()
	items := clustered(3000, 64, 5)
	for i := range 2000 {
		items[i].Vector = items[i%3].Vector
	}
	x := build(t, small(64), items)
	for _, item := range items[2000:] {
		hits, err := x.Search(item.Vector, SearchOptions{})
		if err != nil || len(hits) != 10 || hits[0].ID != item.ID {
			t.Errorf("%x: %v %v", item.ID, hits, err)
		}
	}
	for i := range 3 {
		hits, err := x.Search(items[i].Vector, SearchOptions{K: 100})
		if err != nil || len(hits) != 100 || hits[99].Similarity < 0.9999 {
			t.Errorf("equal to %d: %d hits, %v", i, len(hits), err)
		}
	}
}

func TestSearchOptions(t *testing.T) {
	t.Parallel()
	items := clustered(600, 64, 6)
	x := build(t, small(64), items)
	q := items[0].Vector
	all, err := x.Search(q, SearchOptions{K: 1000, Exact: true})
	if err != nil || len(all) != 600 {
		t.Fatalf("%d hits, %v", len(all), err)
	}
	for _, exact := range []bool{false, true} {
		hits, err := x.Search(q, SearchOptions{K: 20, MinSimilarity: all[4].Similarity, Exact: exact})
		if err != nil || len(hits) != 5 {
			t.Errorf("at least %v: %v, %v", all[4].Similarity, hits, err)
		}
		if hits, err = x.Search(q, SearchOptions{Filter: &Bitmap{}, Exact: exact}); err != nil || len(hits) != 0 {
			t.Errorf("nothing passes: %v, %v", hits, err)
		}
	}
	queries := [][]float32{q, items[1].Vector, items[2].Vector, q}
	many, err := x.SearchMany(queries, SearchOptions{K: 30})
	if err != nil || len(many) != len(queries) {
		t.Fatalf("%v %v", many, err)
	}
	for i, hits := range many {
		if one, err := x.Search(queries[i], SearchOptions{K: 30}); err != nil || !slices.Equal(hits, one) {
			t.Errorf("query %d among many: %v, alone: %v, %v", i, hits, one, err)
		}
	}
	if _, err := x.SearchMany([][]float32{q, make([]float32, 64)}, SearchOptions{}); !errors.Is(err, ErrZero) {
		t.Errorf("a zero query among many: %v", err)
	}
	empty, err := New(small(64))
	if err != nil {
		t.Fatal(err)
	}
	if hits, err := empty.Search(q, SearchOptions{}); err != nil || len(hits) != 0 {
		t.Errorf("empty: %v %v", hits, err)
	}
}

// TestUnlikeVectorsReplaceOthers: codes and lists are made to fit again before many vectors are unlike those they were made for.
func TestUnlikeVectorsReplaceOthers(t *testing.T) {
	t.Parallel()
	old := knntest.Spec{Shape: knntest.TextLike, N: 8000, Dims: 128, Seed: 1}.Make()
	fresh := knntest.Spec{Shape: knntest.TextLike, N: old.N / 3, Dims: old.Dims, Seed: 2}.Make()
	items := itemsOf(old)
	x := build(t, Options{Dims: old.Dims}, items)
	for row := range fresh.N {
		items[row].Vector = fresh.Vector(row)
	}
	for put := range slices.Chunk(items[:fresh.N], 100) {
		if err := x.Put(put...); err != nil {
			t.Fatal(err)
		}
	}
	for _, thorough := range []bool{false, true} {
		lost := 0
		for _, item := range items {
			hits, err := x.Search(item.Vector, SearchOptions{Thorough: thorough})
			if err != nil {
				t.Fatal(err)
			}
			if !slices.ContainsFunc(hits, func(h Hit) bool { return h.ID == item.ID }) {
				lost++
			}
		}
		if lost > 0 {
			t.Errorf("thorough %v: %d of %d vectors do not find themselves", thorough, lost, len(items))
		}
	}
}
