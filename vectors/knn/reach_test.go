package knn

import (
	"testing"

	"reconcile.dev/reconcile/vectors/knn/knntest"
)

// inReachOf is how many vectors default searches for the queries compare on the average.
func inReachOf(x *Index, d *knntest.Data) int {
	v := x.current.Load()
	w, sum := newWalker(v.shape), 0
	for q := range d.Queries {
		v.encode(&w.query, d.Query(q), w.rotated)
		w.scanPivots(v, &w.query)
		limit := v.reached(&w.query, w.found, v.efforts.reach)
		for _, key := range w.found {
			if key < limit {
				sum += len(v.lists.members[slotOf(key, 0)])
			}
		}
	}
	return sum / d.Queries
}

// TestReach: searches for queries that are like vectors look at few of them, and those for others at more, as an index that is
// opened does.
func TestReach(t *testing.T) {
	t.Parallel()
	spec := knntest.Spec{Shape: knntest.Clustered, N: 8000, Queries: 100, Dims: 64, Seed: 31}
	d := spec.Make()
	x := build(t, Options{Dims: d.Dims}, itemsOf(d))
	spec.Foreign = true
	foreign := spec.Make()
	few, more := inReachOf(x, d), inReachOf(x, foreign)
	if few > d.N/4 || more < 2*few {
		t.Errorf("%d of %d vectors are within reach, of foreign queries %d", few, d.N, more)
	}
	if r := recallOf(t, x, foreign, foreign.Truth(DefaultK), SearchOptions{}); r < 0.95 {
		t.Errorf("foreign queries: recall %.4f", r)
	}
	y, err := Open(x.AppendTo(nil))
	if err != nil || y.current.Load().efforts != x.current.Load().efforts {
		t.Errorf("opened: %+v, built: %+v, %v", y.current.Load().efforts, x.current.Load().efforts, err)
	}
	for _, o := range []SearchOptions{{Ef: 64}, {K: 11}, {Filter: &Bitmap{}}} {
		if got := x.complete(x.current.Load(), o).reach; got != 0 {
			t.Errorf("%+v: a reach of %d", o, got)
		}
	}
}

// TestRandomQueries: queries in any direction, where all vectors are near a subspace.
func TestRandomQueries(t *testing.T) {
	t.Parallel()
	d := knntest.Spec{Shape: knntest.LowDimensional, N: 4000, Queries: 1, Dims: 96, Seed: 32}.Make()
	any := knntest.Spec{Shape: knntest.Uniform, N: 1, Queries: 100, Dims: 96, Seed: 33}.Make()
	x := build(t, Options{Dims: d.Dims}, itemsOf(d))
	for _, thorough := range []bool{false, true} {
		found, all := 0, 0
		for q := range any.Queries {
			exact, err := x.Search(any.Query(q), SearchOptions{Exact: true})
			if err != nil {
				t.Fatal(err)
			}
			hits, err := x.Search(any.Query(q), SearchOptions{Thorough: thorough})
			if err != nil {
				t.Fatal(err)
			}
			for _, h := range hits {
				if h.Similarity >= exact[len(exact)-1].Similarity {
					found++
				}
			}
			all += len(exact)
		}
		if share := float64(found) / float64(all); share < 0.95 || thorough && share < 0.99 {
			t.Errorf("thorough %v: recall %.4f", thorough, share)
		}
	}
}

// TestWalkEndsAtWanted: a walk for a vector that is to say only whether it is found ends where it is the best one met.
func TestWalkEndsAtWanted(t *testing.T) {
	t.Parallel()
	d := knntest.Spec{Shape: knntest.Clustered, N: 1500, Queries: 1, Dims: 64, Seed: 34}.Make()
	x := build(t, Options{Dims: d.Dims, GraphFrom: 1000, EfConstruction: 60}, itemsOf(d))
	v := x.current.Load()
	w := newWalker(v.shape)
	whole, ended := 0, 0
	for slot := range uint32(v.len()) {
		code := w.take(v, slot)
		self := keyOf(w.one(v, code, slot), slot, 0)
		for _, wanted := range []uint64{0, self} {
			w.wanted = wanted
			w.walk(v, code, 0, brief, brief+1, v.m, w.approach(v, code, brief)...)
			if w.pool.keys[0]&^done != self {
				t.Fatalf("slot %d, wanted %d: another one is best", slot, wanted)
			}
			if wanted == 0 {
				whole += len(w.met)
			} else {
				ended += len(w.met)
			}
		}
		w.wanted = 0
	}
	if ended > whole*3/4 {
		t.Errorf("walks that may end meet %d, others %d", ended, whole)
	}
}

// TestChangesKeepScans: where walks do not find enough and all codes are compared, that is so after changes, too, which leave more slots.
func TestChangesKeepScans(t *testing.T) {
	t.Parallel()
	d := knntest.Spec{Shape: knntest.Uniform, N: 3000, Queries: 60, Dims: 64, Seed: 35}.Make()
	items := itemsOf(d)
	x := build(t, Options{Dims: d.Dims, GraphFrom: 1000, EfConstruction: 40}, items)
	truth := d.Truth(DefaultK)
	for _, changed := range []bool{false, true} {
		if changed {
			if err := x.Put(items[:1500]...); err != nil {
				t.Fatal(err)
			}
		}
		for _, o := range []SearchOptions{{}, {Thorough: true}} {
			if r := recallOf(t, x, d, truth, o); r < 0.99 {
				t.Errorf("changed %v, thorough %v: recall %.4f", changed, o.Thorough, r)
			}
		}
	}
}
