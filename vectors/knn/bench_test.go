package knn

import (
	"context"
	"fmt"
	"testing"

	"reconcile.dev/reconcile/vectors/knn/knntest"
)

// benchmarked has an index of n clustered vectors for each n.
func benchmarked(b *testing.B, n int) (*Index, *knntest.Data) {
	b.Helper()
	d := knntest.Spec{N: n, Queries: 200, Dims: 768, Seed: 1}.Make()
	x, err := Build(context.Background(), Options{}, itemsOf(d), nil)
	if err != nil {
		b.Fatal(err)
	}
	return x, d
}

func BenchmarkSearch(b *testing.B) {
	for _, n := range []int{10_000, 100_000} {
		x, d := benchmarked(b, n)
		half := &Bitmap{}
		for slot := range uint32(n) {
			if slot%2 == 0 {
				half.Add(slot)
			}
		}
		into := make([]Hit, 0, DefaultK)
		for _, c := range []struct {
			name string
			o    SearchOptions
		}{
			{"default", SearchOptions{}}, {"thorough", SearchOptions{Thorough: true}},
			{"half", SearchOptions{Filter: half}}, {"exact", SearchOptions{Exact: true}},
		} {
			c.o.Into = into
			b.Run(fmt.Sprintf("%d/%s", n, c.name), func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					if _, err := x.Search(d.Query(i%d.Queries), c.o); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkBuild(b *testing.B) {
	d := knntest.Spec{N: DefaultGraphFrom, Queries: 200, Dims: 768, Seed: 1}.Make()
	items := itemsOf(d)
	for b.Loop() {
		if _, err := Build(context.Background(), Options{}, items, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPut(b *testing.B) {
	x, d := benchmarked(b, DefaultGraphFrom)
	for i := 0; b.Loop(); i++ {
		if err := x.Put(Item{uint64(i % 1000), d.Query(i % d.Queries)}); err != nil {
			b.Fatal(err)
		}
	}
}
