package knn

import (
	"bytes"
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"reconcile.dev/reconcile/vectors/kernel"
	"reconcile.dev/reconcile/vectors/knn/knntest"
)

// kinds are vectors of all kinds.
func kindsOf(n, queries, dims int) (specs []knntest.Spec) {
	for _, shape := range knntest.Shapes() {
		specs = append(specs, knntest.Spec{Shape: shape, N: n, Queries: queries, Dims: dims, Seed: 21})
	}
	for _, noise := range []float32{0.0015, 0.01, 0.2} {
		specs = append(specs, knntest.Spec{Shape: knntest.Copies, N: n, Queries: queries, Dims: dims, Seed: 21, Noise: noise})
	}
	return specs
}

// foundItself is the share of vectors that a search finds, or else K that equal them.
func foundItself(t *testing.T, x *Index, d *knntest.Data, o SearchOptions) float64 {
	t.Helper()
	found := 0
	for row := range d.N {
		hits, err := x.Search(d.Vector(row), o)
		if err != nil {
			t.Fatal(err)
		}
		self := slices.ContainsFunc(hits, func(h Hit) bool { return rowOf(h.ID) == row })
		if self || len(hits) == DefaultK && hits[DefaultK-1].Similarity > 1-1e-6 {
			found++
		}
	}
	return float64(found) / float64(d.N)
}

// buildsMany skips a test with -short that builds many or large graphs: it takes minutes under the race detector, which runs the short
// tests, and shares nothing that the others do not.
func buildsMany(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("builds many graphs")
	}
}

// TestRecallOfAllKinds: whatever the vectors are, a build finds out what it takes, with a graph and without.
func TestRecallOfAllKinds(t *testing.T) {
	buildsMany(t)
	t.Parallel()
	for _, spec := range kindsOf(2500, 100, 64) {
		for _, graphFrom := range []int{1000, DefaultGraphFrom} {
			t.Run(fmt.Sprintf("%v %g, graph from %d", spec.Shape, spec.Noise, graphFrom), func(t *testing.T) {
				t.Parallel()
				d := spec.Make()
				x := build(t, Options{Dims: d.Dims, GraphFrom: graphFrom, EfConstruction: 60}, itemsOf(d))
				truth := d.Truth(DefaultK)
				if r := recallOf(t, x, d, truth, SearchOptions{}); r < 0.95 {
					t.Errorf("recall %.4f", r)
				}
				if r := recallOf(t, x, d, truth, SearchOptions{Thorough: true}); r < 0.99 {
					t.Errorf("thorough: recall %.4f", r)
				}
				if r := foundItself(t, x, d, SearchOptions{}); r < 0.999 {
					t.Errorf("%.4f of the vectors find themselves", r)
				}
				if r := foundItself(t, x, d, SearchOptions{Thorough: true}); r < 1 {
					t.Errorf("thorough: %.4f of the vectors find themselves", r)
				}
			})
		}
	}
}

// TestFewCandidatesOfGroups: where groups of vectors are so tight that codes do not tell apart what is in one, a search that
// follows few candidates still comes to the right group, and compares enough of it exactly.
func TestFewCandidatesOfGroups(t *testing.T) {
	buildsMany(t)
	t.Parallel()
	for noise, want := range map[float32]float64{0.01: 0.98, 0.2: 0.95} {
		d := knntest.Spec{Shape: knntest.Copies, Noise: noise, N: 10_000, Queries: 200, Dims: 100, Seed: 23}.Make()
		x := build(t, Options{Dims: d.Dims, GraphFrom: 1000}, itemsOf(d))
		if r := recallOf(t, x, d, d.Truth(DefaultK), SearchOptions{Ef: DefaultK}); r < want {
			t.Errorf("noise %g: recall %.4f", noise, r)
		}
	}
}

// TestRecallOfForeignQueries: queries that are unlike all vectors.
func TestRecallOfForeignQueries(t *testing.T) {
	buildsMany(t)
	t.Parallel()
	for _, shape := range []knntest.Shape{knntest.Clustered, knntest.Offset, knntest.Copies} {
		d := knntest.Spec{Shape: shape, N: 4000, Queries: 100, Dims: 64, Seed: 22, Foreign: true}.Make()
		x := build(t, Options{Dims: d.Dims, GraphFrom: 1000, EfConstruction: 80}, itemsOf(d))
		for _, o := range []SearchOptions{{}, {Thorough: true}} {
			if r := recallOf(t, x, d, d.Truth(DefaultK), o); r < 0.95 || o.Thorough && r < 0.99 {
				t.Errorf("%v, thorough %v: recall %.4f", shape, o.Thorough, r)
			}
		}
	}
}

// TestMoreEffortFindsMore: and what is found is sorted, and as similar as it says.
func TestMoreEffortFindsMore(t *testing.T) {
	buildsMany(t)
	t.Parallel()
	d := knntest.Spec{Shape: knntest.Uniform, N: 3000, Queries: 100, Dims: 64, Seed: 23}.Make()
	x := build(t, Options{Dims: d.Dims, GraphFrom: 1000, EfConstruction: 80}, itemsOf(d))
	last := 0.0
	for ef := 10; ef <= d.N; ef *= 2 {
		r := recallOf(t, x, d, d.Truth(DefaultK), SearchOptions{Ef: ef})
		if r < last-0.01 {
			t.Errorf("ef %d: recall %.4f, with half of it %.4f", ef, r, last)
		}
		last = r
		for q := range 10 {
			hits, err := x.Search(d.Query(q), SearchOptions{Ef: ef})
			if err != nil || !slices.IsSortedFunc(hits, compareHits) {
				t.Fatalf("%v %v", hits, err)
			}
			for _, h := range hits {
				if off := cosine(d.Query(q), d.Vector(rowOf(h.ID))) - float64(h.Similarity); off > 1e-5 || off < -1e-5 {
					t.Errorf("%x is off by %g", h.ID, off)
				}
			}
		}
	}
	if last < 1 {
		t.Errorf("with the greatest effort: recall %.4f", last)
	}
}

// TestCalibrated: what a build chooses depends on the vectors, is kept in the bytes, and is the same at every level of
// instructions. Options override it.
func TestCalibrated(t *testing.T) {
	buildsMany(t)
	t.Parallel()
	chosen := map[knntest.Shape]int{}
	for _, shape := range []knntest.Shape{knntest.LowDimensional, knntest.Uniform} {
		d := knntest.Spec{Shape: shape, N: 3000, Queries: 1, Dims: 64, Seed: 24}.Make()
		o := Options{Dims: d.Dims, GraphFrom: 1000, EfConstruction: 60}
		x := build(t, o, itemsOf(d))
		data := x.AppendTo(nil)
		y, err := Open(data)
		if err != nil {
			t.Fatal(err)
		}
		normal, thorough := x.Efforts()
		if n, most := y.Efforts(); n != normal || most != thorough || most < n || n < DefaultEfSearch {
			t.Errorf("%v: %d and %d, opened %d and %d", shape, normal, thorough, n, most)
		}
		chosen[shape] = normal
		for _, level := range kernel.Levels() {
			before := kernel.Use(level)
			same := bytes.Equal(build(t, o, itemsOf(d)).AppendTo(nil), data)
			kernel.Use(before)
			if !same {
				t.Errorf("%v: other bytes with %v", shape, level)
			}
		}
		o.EfSearch, o.EfThorough = 300, 7
		if n, most := build(t, o, itemsOf(d)).Efforts(); n != 300 || most != 300 {
			t.Errorf("options: %d and %d", n, most)
		}
	}
	if chosen[knntest.LowDimensional] != DefaultEfSearch || chosen[knntest.Uniform] <= DefaultEfSearch {
		t.Errorf("chosen: %v", chosen)
	}
}

// TestCodesFitLater: an index that grows from nothing, and one that becomes another, are coded and calibrated again.
func TestCodesFitLater(t *testing.T) {
	buildsMany(t)
	t.Parallel()
	d := knntest.Spec{Shape: knntest.Offset, N: 3000, Queries: 100, Dims: 64, Seed: 25}.Make()
	for _, graphFrom := range []int{1500, DefaultGraphFrom} {
		x, err := New(Options{Dims: d.Dims, GraphFrom: graphFrom, EfConstruction: 80})
		if err != nil {
			t.Fatal(err)
		}
		other := clustered(800, d.Dims, 26)
		for i := range other {
			other[i].ID = idOf(d.N + i)
		}
		if err := x.Put(other...); err != nil {
			t.Fatal(err)
		}
		items := itemsOf(d)
		for len(items) > 0 {
			n := min(500, len(items))
			if err := x.Put(items[:n]...); err != nil {
				t.Fatal(err)
			}
			items = items[n:]
		}
		for _, item := range other {
			x.Delete(item.ID)
		}
		if err := x.Verify(); err != nil {
			t.Error(err)
		}
		v := x.current.Load()
		if norm := kernel.Norm(v.centre); norm < 0.2 || v.calibrated < 1500 {
			t.Errorf("the centre has the length %.2f; calibrated with %d", norm, v.calibrated)
		}
		for _, o := range []SearchOptions{{}, {Thorough: true}} {
			if r := recallOf(t, x, d, d.Truth(DefaultK), o); r < 0.95 || o.Thorough && r < 0.99 {
				t.Errorf("graph from %d, thorough %v: recall %.4f", graphFrom, o.Thorough, r)
			}
		}
	}
}

// TestLengthsDoNotMatter: outliers a hundred times as long as the others change nothing.
func TestLengthsDoNotMatter(t *testing.T) {
	t.Parallel()
	items := clustered(1000, 64, 27)
	long := slices.Clone(items)
	for i := 0; i < len(long); i += 7 {
		long[i].Vector = slices.Clone(long[i].Vector)
		for j := range long[i].Vector {
			long[i].Vector[j] *= 128
		}
	}
	x, y := build(t, small(64), items), build(t, small(64), long)
	for _, item := range long[:200] {
		a, err := x.Search(item.Vector, SearchOptions{})
		b, err2 := y.Search(item.Vector, SearchOptions{})
		if err := cmp.Or(err, err2); err != nil || !slices.Equal(a, b) {
			t.Errorf("%v and %v, %v", a, b, err)
		}
	}
}

// TestEachVectorIsFound: the links that findAll adds are needed.
func TestEachVectorIsFound(t *testing.T) {
	buildsMany(t)
	t.Parallel()
	d := knntest.Spec{Shape: knntest.Dominated, N: 4000, Queries: 1, Dims: 64, Seed: 28}.Make()
	x := build(t, Options{Dims: d.Dims, GraphFrom: 1000, EfConstruction: 24, M: 6}, itemsOf(d))
	v := x.next()
	l := x.linkerOf(v)
	if missed := l.missed(v.alive()); len(missed) > 0 {
		t.Errorf("%d vectors are not found", len(missed))
	}
	x.frozen = true // copies the links
	v = x.next()
	l = x.linkerOf(v)
	l.addAgain()
	if missed := l.missed(v.alive()); len(missed) == 0 {
		t.Error("without findAll all vectors are found, too: the test says nothing")
	}
}

// addAgain links all slots anew without looking whether they are found.
func (l *linker) addAgain() {
	v := l.v
	for i := range v.base.links {
		v.base.links[i] = noSlot
	}
	for i := range v.upper {
		v.upper[i] = noSlot
	}
	v.entry, v.top = noSlot, 0
	l.addAll(v.alive(), nil)
	l.connect()
}

func TestLowest(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		keys := make([]uint64, r.IntN(50))
		for i := range keys {
			keys[i] = r.Uint64N(30)
		}
		want := slices.Sorted(slices.Values(keys))
		n := r.IntN(60)
		if got := lowest(keys, n); !slices.Equal(got, want[:min(n, len(want))]) {
			t.Fatalf("the %d lowest of %v: %v", n, want, got)
		}
	}
}
