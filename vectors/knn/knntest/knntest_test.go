package knntest

import (
	"math"
	"slices"
	"testing"

	"reconcile.dev/reconcile/vectors/kernel"
)

// TestLocalDimension: the vectors are as hard to search as the documentation says. It is measured with 100 neighbours.
func TestLocalDimension(t *testing.T) {
	t.Parallel()
	for _, shape := range []Shape{Clustered, TextLike} {
		for _, n := range []int{10_000, 100_000} {
			if testing.Short() && n > 10_000 {
				continue
			}
			d := Spec{Shape: shape, N: n, Queries: 100, Dims: 768, Seed: 1}.Make()
			if lid := d.lid(100); lid < 20 || lid > 24 {
				t.Errorf("%d %s vectors have a local intrinsic dimension of %.1f, not 20 to 24", n, shape, lid)
			}
		}
	}
}

// TestLIDOfKnownDimension: the estimate is right where the dimension is known, for points of a sphere.
func TestLIDOfKnownDimension(t *testing.T) {
	t.Parallel()
	for _, dims := range []int{2, 4, 9} {
		d := Spec{N: 20_000, Queries: 50, Dims: dims, Seed: 3}.Make()
		if lid, want := d.lid(20), float64(dims-1); math.Abs(lid-want) > 0.25*want {
			t.Errorf("points on a sphere of %g dimensions are estimated to have %.2f", want, lid)
		}
	}
}

// TestTextLikeIsUneven: the vectors point to one side, and some components are far larger than others, before a rotation.
func TestTextLikeIsUneven(t *testing.T) {
	t.Parallel()
	d := Spec{Shape: TextLike, N: 2000, Dims: 768, Seed: 1}.Make()
	evenness := func(v []float32) float64 { // the largest component by the one that even ones would have
		largest := float32(0)
		for _, x := range v {
			largest = max(largest, x, -x)
		}
		return float64(largest) * math.Sqrt(float64(len(v)))
	}
	rotation, rotated := kernel.NewRotation(d.Dims, 9), make([]float32, d.Dims)
	similar, before, after := 0.0, 0.0, 0.0
	for i := range 1000 {
		rotation.Apply(rotated, d.Vector(i))
		similar += float64(kernel.Dot(d.Vector(i), d.Vector(i+1000))) / 1000
		before, after = before+evenness(d.Vector(i))/1000, after+evenness(rotated)/1000
	}
	if similar < 0.4 || before < 8 || after > 5 {
		t.Errorf("unrelated vectors are similar by %.2f, the largest component is %.1f, after a rotation %.1f", similar, before, after)
	}
}

func TestSpecsGiveTheSameVectors(t *testing.T) {
	t.Parallel()
	spec := Spec{N: 300, Queries: 20, Dims: 100, Seed: 5}
	a, b := spec.Make(), spec.generate()
	if a != spec.Make() {
		t.Error("the vectors are made twice")
	}
	if !slices.Equal(a.Vectors, b.Vectors) || !slices.Equal(a.Asked, b.Asked) {
		t.Error("two calls make different vectors")
	}
	spec.Seed++
	if slices.Equal(a.Vectors, spec.Make().Vectors) {
		t.Error("another seed makes the same vectors")
	}
	for i := range a.N {
		if norm := kernel.Norm(a.Vector(i)); math.Abs(norm-1) > 1e-6 {
			t.Fatalf("vector %d has length %g", i, norm)
		}
	}
}

func TestTruth(t *testing.T) {
	t.Parallel()
	d := Spec{N: 500, Queries: 33, Dims: 40, Seed: 6}.Make()
	odd := func(row uint32) bool { return row%2 == 1 }
	all, some := d.Truth(7), d.TruthWhere(7, odd)
	for q := range d.Queries {
		var want []Neighbor
		for i := range d.N {
			want = append(want, Neighbor{uint32(i), kernel.Dot(d.Query(q), d.Vector(i))})
		}
		slices.SortFunc(want, order)
		if !slices.Equal(all[q], want[:7]) {
			t.Fatalf("query %d: %v, want %v", q, all[q], want[:7])
		}
		want = slices.DeleteFunc(want, func(n Neighbor) bool { return !odd(n.Row) })
		if !slices.Equal(some[q], want[:7]) {
			t.Fatalf("query %d among odd rows: %v, want %v", q, some[q], want[:7])
		}
	}
	if few := d.TruthWhere(7, func(row uint32) bool { return row < 3 }); len(few[0]) != 3 {
		t.Errorf("%d neighbours where only 3 match", len(few[0]))
	}
}

func TestRecall(t *testing.T) {
	t.Parallel()
	d := Spec{N: 500, Queries: 1, Dims: 40, Seed: 6}.Make()
	truth := d.Truth(11)[0]
	var rows []uint32
	for _, n := range truth {
		rows = append(rows, n.Row)
	}
	ten := truth[:10]
	for _, c := range []struct {
		name  string
		found []uint32
		want  float64
	}{
		{"all", rows[:10], 1},
		{"none", nil, 0},
		{"half", rows[5:10], 0.5},
		{"one too far", append(slices.Clone(rows[:9]), rows[10]), 0.9},
		{"one twice", append(slices.Clone(rows[:9]), rows[0]), 0.9},
		{"one that does not exist", append(slices.Clone(rows[:9]), 500), 0.9},
	} {
		if got := d.Recall(0, ten, c.found); math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: recall %g, want %g", c.name, got, c.want)
		}
	}
	if got := d.Recall(0, nil, rows); got != 1 {
		t.Errorf("recall of nothing: %g", got)
	}
}
