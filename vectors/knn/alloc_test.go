//go:build !race

package knn

import "testing"

// TestNoAllocations: under the race detector a sync.Pool drops things at random.
func TestNoAllocations(t *testing.T) {
	for _, from := range []int{100, 10_000} {
		items := clustered(2000, 64, 7)
		x := build(t, Options{Dims: 64, GraphFrom: from}, items)
		half := &Bitmap{}
		for slot := range uint32(1000) {
			half.Add(slot * 2)
		}
		into := make([]Hit, 0, 10)
		for _, o := range []SearchOptions{{}, {Exact: true}, {Filter: half}} {
			o.Into = into
			if n := testing.AllocsPerRun(200, func() { _, _ = x.Search(items[7].Vector, o) }); n > 0.5 {
				t.Errorf("graph from %d, exact %v, filter %v: %v allocations", from, o.Exact, o.Filter != nil, n)
			}
		}
	}
}
