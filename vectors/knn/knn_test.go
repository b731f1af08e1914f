package knn

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"reconcile.dev/reconcile/state/mutants"
	"reconcile.dev/reconcile/vectors/knn/knntest"
)

// small options have a graph from 200 vectors on.
func small(dims int) Options {
	return Options{Dims: dims, GraphFrom: 200, EfConstruction: 60, Threads: 2}
}

// clustered are items with IDs in no order.
func clustered(n, dims int, seed uint64) []Item {
	return itemsOf(knntest.Spec{N: n, Queries: 1, Dims: dims, Seed: seed}.Make())
}

// compareHits puts the most similar first, and equals in the order of their IDs.
func compareHits(a, b Hit) int {
	return cmp.Or(cmp.Compare(b.Similarity, a.Similarity), cmp.Compare(a.ID, b.ID))
}

func itemsOf(d *knntest.Data) []Item {
	items := make([]Item, d.N)
	for i := range items {
		items[i] = Item{idOf(i), d.Vector(i)}
	}
	return items
}

// idOf is the ID of row i; rowOf the row of an ID.
func idOf(i int) uint64   { return uint64(i) * 0x9e3779b97f4a7c15 }
func rowOf(id uint64) int { return int(id * 0xf1de83e19937733d) }

func build(t testing.TB, o Options, items []Item) *Index {
	t.Helper()
	x, err := Build(context.Background(), o, items, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Verify(); err != nil {
		t.Fatal(err)
	}
	return x
}

func TestSameBytes(t *testing.T) {
	t.Parallel()
	items := clustered(3*peerReach*linkedFor, 64, 1) // the last batches have more than are compared with each other
	testSameBytes(t, small(64), items)
	testSameBytes(t, Options{Dims: 64}, items)
}

// testSameBytes: with and without a graph.
func testSameBytes(t *testing.T, o Options, items []Item) {
	want := build(t, o, items).AppendTo(nil)
	for _, threads := range []int{7, 1, 2}[:mutants.Size(1, 3, 3)] {
		o.Threads = threads
		shuffled := slices.Clone(items)
		rand.New(rand.NewPCG(uint64(threads), 1)).Shuffle(len(items), func(i, j int) {
			shuffled[i], shuffled[j] = shuffled[j], shuffled[i]
		})
		if got := build(t, o, shuffled).AppendTo(nil); !bytes.Equal(got, want) {
			t.Errorf("%d threads: other bytes", threads)
		}
	}
	x, err := Open(want)
	if err != nil {
		t.Fatal(err)
	}
	if err := x.Verify(); err != nil {
		t.Error(err)
	}
	if got := x.AppendTo(nil); !bytes.Equal(got, want) {
		t.Error("opened and written again: other bytes")
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	nan, inf := float32(math.NaN()), float32(math.Inf(-1))
	x := build(t, small(3), []Item{{1, []float32{1, 0, 0}}})
	cases := []struct {
		v    []float32
		want error
	}{
		{nil, errDims}, {[]float32{1, 2}, errDims}, {make([]float32, 4), errDims}, {make([]float32, 3), ErrZero},
		{[]float32{1, nan, 0}, errNotFinite}, {[]float32{1, 0, inf}, errNotFinite},
	}
	for _, c := range cases {
		if err := x.Put(Item{2, []float32{0, 1, 0}}, Item{3, c.v}); !errors.Is(err, c.want) {
			t.Errorf("Put %v: %v", c.v, err)
		}
		if _, err := x.Search(c.v, SearchOptions{}); !errors.Is(err, c.want) {
			t.Errorf("Search %v: %v", c.v, err)
		}
		if _, err := Build(context.Background(), small(3), []Item{{3, c.v}}, nil); !errors.Is(err, c.want) {
			t.Errorf("Build %v: %v", c.v, err)
		}
	}
	twice := []Item{{2, []float32{0, 1, 0}}, {2, []float32{0, 1, 1}}}
	if err := x.Put(twice...); !errors.Is(err, ErrTwice) {
		t.Errorf("Put: %v", err)
	}
	if _, err := Build(context.Background(), small(3), twice, nil); !errors.Is(err, ErrTwice) {
		t.Errorf("Build: %v", err)
	}
	if n := x.Len(); n != 1 {
		t.Errorf("%d vectors after refusals", n)
	}
	for _, v := range [][]float32{{0, 1e-40, 0}, {3e38, 3e38, 3e38}} {
		if err := x.Put(Item{9, v}); err != nil {
			t.Errorf("Put %v: %v", v, err)
		}
		if hits, err := x.Search(v, SearchOptions{K: 1}); err != nil || hits[0].ID != 9 || hits[0].Similarity < 0.9999 {
			t.Errorf("Search %v: %v %v", v, hits, err)
		}
	}
}

// model is what an index should be.
type model map[uint64][]float32

// check compares an index with the model: exact answers, names, and what a walk finds.
func (m model) check(t *testing.T, x *Index, atLeast float64) {
	t.Helper()
	if err := x.Verify(); err != nil {
		t.Fatal(err)
	}
	if x.Len() != len(m) {
		t.Fatalf("%d vectors, want %d", x.Len(), len(m))
	}
	found, all := 0, 0
	for id, v := range m {
		got, ok := x.Vector(nil, id)
		slot, ok2 := x.Slot(id)
		back, ok3 := x.ID(slot)
		if !ok || !ok2 || !ok3 || back != id || len(got) != len(v) || math.Abs(float64(got[0]-v[0])) > 1e-4*math.Abs(float64(v[0]))+1e-4 {
			t.Fatalf("%x: %v %v, slot %d of %x", id, got, ok, slot, back)
		}
		if all < 1000 {
			exact, err := x.Search(v, SearchOptions{Exact: true, K: 10})
			if err != nil || exact[0].Similarity < 0.9999 {
				t.Fatalf("%x: exact %v %v", id, exact, err)
			}
			for i, h := range exact {
				if w, ok := m[h.ID]; !ok || math.Abs(cosine(v, w)-float64(h.Similarity)) > 1e-4 {
					t.Fatalf("%x: hit %d %v", id, i, h)
				}
			}
			if i := len(exact) - 1; i > 0 {
				above := 0
				for _, w := range m {
					if cosine(v, w) > float64(exact[i].Similarity)+1e-5 {
						above++
					}
				}
				if above > i {
					t.Fatalf("%x: %d are nearer than hit %d", id, above, i)
				}
			}
			hits, err := x.Search(v, SearchOptions{K: 10})
			if err != nil || !slices.IsSortedFunc(hits, compareHits) {
				t.Fatalf("%x: hits %v %v", id, hits, err)
			}
			for _, h := range hits {
				if slices.Contains(exact, h) {
					found++
				}
			}
			all += len(exact)
		}
	}
	if all > 0 && float64(found) < atLeast*float64(all) {
		t.Errorf("recall %.3f", float64(found)/float64(all))
	}
}

func cosine(a, b []float32) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab += float64(a[i]) * float64(b[i])
		aa += float64(a[i]) * float64(a[i])
		bb += float64(b[i]) * float64(b[i])
	}
	return ab / math.Sqrt(aa*bb)
}

func TestHistories(t *testing.T) {
	t.Parallel()
	const dims = 40
	for _, o := range []Options{small(dims), {Dims: dims}} {
		for seed := range uint64(4) {
			t.Run(fmt.Sprintf("graph from %d, %d", o.GraphFrom, seed), func(t *testing.T) {
				t.Parallel()
				history(t, o, seed)
			})
		}
	}
}

// ids are in order.
func (m model) ids() []uint64 { return slices.Sorted(maps.Keys(m)) }

// change does one random change to both, and returns how many of the fresh items it used, from next on.
func (m model) change(t *testing.T, x *Index, r *rand.Rand, fresh []Item, next int) int {
	n := 1 + r.IntN(8)
	all := m.ids()
	switch r.IntN(4) {
	case 0:
		gone := []uint64{1}
		for range min(n, len(all)) {
			id := all[r.IntN(len(all))]
			gone = append(gone, id)
			delete(m, id)
		}
		x.Delete(gone...)
		return 0
	case 1:
		if len(all) > 0 {
			id := all[r.IntN(len(all))]
			m[id] = fresh[r.IntN(len(fresh))].Vector
			if err := x.Put(Item{id, m[id]}); err != nil {
				t.Fatal(err)
			}
		}
		return 0
	}
	if err := x.Put(fresh[next : next+n]...); err != nil {
		t.Fatal(err)
	}
	for _, item := range fresh[next : next+n] {
		m[item.ID] = item.Vector
	}
	return n
}

// history does random changes to an index and a model.
func history(t *testing.T, o Options, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 2))
	fresh := clustered(6000, o.Dims, seed+10)
	m := model{}
	x, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if seed%2 == 1 {
		for _, item := range fresh[:500] {
			m[item.ID] = item.Vector
		}
		x = build(t, o, fresh[:500])
	}
	next := 500
	for round := range 12 {
		for range 60 {
			next += m.change(t, x, r, fresh, next)
		}
		if round%4 == 3 {
			m.check(t, x, 0.95)
			data := x.AppendTo(nil)
			y, err := Open(data)
			if err != nil {
				t.Fatal(err)
			}
			m.check(t, y, 0.95)
			if seed%2 == 0 {
				x = y
			}
		}
	}
	x.Delete(m.ids()...)
	model{}.check(t, x, 1)
	if err := x.Put(fresh[:300]...); err != nil {
		t.Fatal(err)
	}
	m = model{}
	for _, item := range fresh[:300] {
		m[item.ID] = item.Vector
	}
	m.check(t, x, 0.95)
}
