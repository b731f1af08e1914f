package lexical_test

import (
	"slices"
	"testing"
	"time"

	"reconcile.dev/reconcile/vectors/lexical"
	"reconcile.dev/reconcile/vectors/lexical/lexicaltest"
)

func BenchmarkT10(b *testing.B) {
	for _, n := range []int{10_000, 50_000} {
		corpus := lexicaltest.New(1)
		docs := corpus.Documents(n)
		queries := corpus.Queries(2000)
		start := time.Now()
		index, err := lexical.Build(docs)
		if err != nil {
			b.Fatal(err)
		}
		build := time.Since(start)
		set, err := lexical.NewSet(lexical.Segment{Index: index})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(map[int]string{10_000: "10000", 50_000: "50000"}[n], func(b *testing.B) {
			var times []time.Duration
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				start := time.Now()
				if _, err := set.Search(queries[i%len(queries)], 20, nil); err != nil {
					b.Fatal(err)
				}
				times = append(times, time.Since(start))
			}
			slices.Sort(times)
			b.ReportMetric(float64(times[len(times)/2].Nanoseconds())/1000, "p50-µs")
			b.ReportMetric(float64(times[len(times)*99/100].Nanoseconds())/1000, "p99-µs")
			b.ReportMetric(float64(build.Milliseconds()), "build-ms")
			b.ReportMetric(float64(len(index.Bytes()))/1e6, "MB")
		})
	}
}
