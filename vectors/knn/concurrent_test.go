package knn

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"reconcile.dev/reconcile/state/mutants"
)

// TestConcurrent: searches beside changes see the index as it was between two of them. Two vectors, and only they, move
// together: whoever finds one of them elsewhere than the other has seen half a change.
func TestConcurrent(t *testing.T) {
	t.Parallel()
	for _, from := range []int{100, 1 << 20} {
		items := clustered(1500, 64, 8)
		x, err := Build(context.Background(), Options{Dims: 64, GraphFrom: from, EfConstruction: 40, Threads: 2}, items[:300], nil)
		if err != nil {
			t.Fatal(err)
		}
		places := [2][]float32{items[0].Vector, items[1].Vector}
		const one, two = 1, 2
		together := func(at int) []Item { return []Item{{one, places[at]}, {two, places[at]}} }
		if err := x.Put(together(0)...); err != nil {
			t.Fatal(err)
		}
		var over atomic.Bool
		var readers sync.WaitGroup
		for reader := range 3 {
			readers.Go(func() {
				r := rand.New(rand.NewPCG(uint64(reader), 1))
				for !over.Load() {
					checkTogether(t, x, places[r.IntN(2)], SearchOptions{K: 20, Exact: reader == 0})
				}
			})
		}
		r := rand.New(rand.NewPCG(9, 9))
		for i := range mutants.Size(200, 600, 600) {
			change(t, x, r, items, i)
			if err := x.Put(together(i % 2)...); err != nil {
				t.Error(err)
			}
		}
		over.Store(true)
		readers.Wait()
		if err := x.Verify(); err != nil {
			t.Error(err)
		}
	}
}

// change puts or deletes one of the items but the first two.
func change(t *testing.T, x *Index, r *rand.Rand, items []Item, i int) {
	item := items[2+r.IntN(len(items)-2)]
	if i%3 == 0 {
		x.Delete(item.ID)
	} else if err := x.Put(item); err != nil {
		t.Error(err)
	}
}

// checkTogether searches where the pair is or was.
func checkTogether(t *testing.T, x *Index, q []float32, o SearchOptions) {
	hits, err := x.Search(q, o)
	if err != nil {
		t.Error(err)
	}
	seen := map[uint64]float32{}
	for _, h := range hits {
		if _, again := seen[h.ID]; again {
			t.Errorf("%x twice in %v", h.ID, hits)
		}
		seen[h.ID] = h.Similarity
	}
	a, found := seen[1]
	b, found2 := seen[2]
	if o.Exact && found && found2 && a-b > 1e-5 || found && found2 && b-a > 1e-5 {
		t.Errorf("the pair is torn: %v", hits)
	}
}

// TestNoGrowth: many changes of a small index leave a small index.
func TestNoGrowth(t *testing.T) {
	t.Parallel()
	const dims, live = 4, 300
	x, err := New(Options{Dims: dims})
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 1))
	v := make([]float32, dims)
	churn := func(n int) {
		for range n {
			for i := range v {
				v[i] = r.Float32() - 0.5
			}
			id := r.Uint64N(live)
			if r.IntN(4) == 0 {
				x.Delete(id)
			} else if err := x.Put(Item{id, v}); err != nil {
				t.Fatal(err)
			}
		}
	}
	churn(mutants.Size(50_000, 200_000, 1_000_000))
	if n := x.Slots(); n > 2*live {
		t.Errorf("%d slots for at most %d vectors", n, live)
	}
	if n := len(x.spare[1]) + len(x.dead) + len(x.slots); n > 3*live {
		t.Errorf("%d notes about at most %d vectors", n, live)
	}
	runtime.KeepAlive(x)
}

// TestNoGrowthOfGraph: the same with links.
func TestNoGrowthOfGraph(t *testing.T) {
	t.Parallel()
	items := clustered(2000, 32, 11)
	x := build(t, Options{Dims: 32, GraphFrom: 100, M: 4, EfConstruction: 20}, items[:500])
	r := rand.New(rand.NewPCG(2, 1))
	for range mutants.Size(500, 5000, 20_000) {
		i := r.IntN(len(items))
		x.Delete(items[(i*7)%len(items)].ID)
		if err := x.Put(items[i]); err != nil {
			t.Fatal(err)
		}
	}
	v := x.current.Load()
	if v.len() > 500+v.live+2*max(64, v.len()/256)+64 {
		t.Errorf("%d slots for %d vectors", v.len(), v.live)
	}
	if n := len(v.upper) / v.m; n > v.len() {
		t.Errorf("%d blocks of links above the lowest level for %d slots", n, v.len())
	}
	if err := x.Verify(); err != nil {
		t.Error(err)
	}
}

// TestBuildEndsWithItsContext: whatever it is at.
func TestBuildEndsWithItsContext(t *testing.T) {
	t.Parallel()
	items := clustered(2000, 64, 1)
	gone := errors.New("nobody waits")
	for _, after := range []int{0, 1, 1000} {
		ctx, cancel := context.WithCancelCause(t.Context())
		if after == 0 {
			cancel(gone)
		}
		last := 0
		x, err := Build(ctx, small(64), items, func(done, total int) {
			if last = done; done >= after {
				cancel(gone)
			}
		})
		if !errors.Is(err, gone) || x != nil || last == len(items) {
			t.Errorf("after %d vectors: %v, %v, %d done", after, x, err, last)
		}
		cancel(nil)
	}
	slices.SortFunc(items, func(a, b Item) int { return compareIDs(a.ID, b.ID) })
	ids := make([]uint64, len(items))
	for i, item := range items {
		ids[i] = item.ID
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	a, err := Assemble(ctx, small(64), ids, func(row int, into []float32) error {
		copy(into, items[row].Vector)
		return nil
	}, func(int, int) { cancel(gone) })
	if !errors.Is(err, gone) || a != nil {
		t.Errorf("Assemble: %v, %v", a, err)
	}
}
