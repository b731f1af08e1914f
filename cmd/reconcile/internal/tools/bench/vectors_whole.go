package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"reconcile.dev/reconcile/vectors"
	"reconcile.dev/reconcile/vectors/graph"
	"reconcile.dev/reconcile/vectors/lexical"
	"reconcile.dev/reconcile/vectors/lexical/lexicaltest"
)

// hybrid: whole searches, including the results: by vectors and then along edges, and by all three rankings; in
// everything, in a domain, in a kind, and among nodes with a label.
func (v *vectorFigures) hybrid(ctx context.Context, _ []int) error {
	for _, n := range nodeSizes {
		x, err := v.nodes(ctx, n)
		if err != nil {
			return err
		}
		bound := 2.0
		if n > 10_000 {
			bound = 5
		}
		for _, mode := range []vectors.Mode{vectors.Related, vectors.Hybrid} {
			for _, q := range []struct {
				of string
				vectors.Query
			}{
				{"", vectors.Query{}},
				{" of academic", vectors.Query{Domains: []graph.Domain{graph.Academic}}},
				{" of functions", vectors.Query{Types: []graph.NodeType{graph.Function}}},
				{" of agent=lead", vectors.Query{Labels: []string{"agent=lead"}}},
			} {
				q.Mode = mode
				times, err := x.ask(ctx, q.Query, max(1, v.bench.runs/4))
				if err != nil {
					return err
				}
				p50, p99 := quantile(times, 0.5), quantile(times, 0.99)
				v.bench.row(fmt.Sprintf("%d nodes, %s%s (p99; p50)", n, mode, q.of), short(p99), "spec 50 ms", short(p50), ms(p50), bound, " ms")
			}
		}
	}
	return nil
}

// ask searches for all texts, runs times.
func (x *nodeIndex) ask(ctx context.Context, q vectors.Query, runs int) ([]time.Duration, error) {
	found := 0
	times, err := sample(runs*len(x.queries), func(i int) error {
		q.Text = x.queries[i%len(x.queries)]
		a, err := x.Search(ctx, q)
		if err == nil {
			found += len(a.Results)
		}
		return err
	})
	if err == nil && found == 0 {
		err = errors.New("nothing is found")
	}
	return times, err
}

// walks: from a node to all that is three edges away, in both directions.
func (v *vectorFigures) walks(ctx context.Context, _ []int) error {
	for _, n := range nodeSizes {
		x, err := v.nodes(ctx, n)
		if err != nil {
			return err
		}
		g, random, visited := x.Graph(), rand.New(rand.NewPCG(v.bench.seed, 3)), 0
		times, err := sample(1000*v.bench.runs, func(int) error {
			steps, _ := g.Walk([]graph.Ref{graph.Ref(random.IntN(n))}, graph.Reach{Depth: 3})
			visited += len(steps)
			return nil
		})
		if err != nil {
			return err
		}
		if visited < 2*len(times) {
			return errors.New("a walk leads nowhere")
		}
		bound := 0.5
		if n > 10_000 {
			bound = 0
		}
		v.bench.quantiles(fmt.Sprintf("%d nodes, walk of depth 3 (p50; p99)", n), "10 ms", times, bound)
	}
	return nil
}

// opened: a whole index is opened and asked once: one that was opened before, and one that came from somewhere else,
// which is compared with its sums.
func (v *vectorFigures) opened(ctx context.Context, _ []int) error {
	for _, n := range nodeSizes {
		x, err := v.nodes(ctx, n)
		if err != nil {
			return err
		}
		for _, known := range []bool{true, false} {
			times, err := sample(5*v.bench.runs, func(i int) error {
				data, unmap, err := mapVectors(x.path)
				if err != nil {
					return err
				}
				defer unmap()
				stored, err := vectors.Load(data, nil, vectors.Options{Sound: known})
				if err == nil && !known {
					err = stored.Confirm() // as who keeps an index does, before anybody uses it
				}
				if err != nil {
					return err
				}
				opened, err := stored.Ready()
				if err != nil {
					return err
				}
				_, err = opened.Search(ctx, vectors.Query{Text: x.queries[i%len(x.queries)]})
				return err
			})
			if err != nil {
				return err
			}
			what, took := "known", quantile(times, 0.5)
			if !known {
				what = "copied"
			}
			v.bench.row(fmt.Sprintf("%d nodes, open and answer, %s", n, what), short(took), "", short(took), ms(took), 20, " ms")
		}
	}
	return nil
}

// words: searches among texts by their words, for any of one to five, the best 20.
func (v *vectorFigures) words(context.Context, []int) error {
	const texts = 50_000
	corpus := lexicaltest.New(v.bench.seed)
	docs, queries := corpus.Documents(texts), corpus.Queries(vectorAsked)
	var index *lexical.Index
	built, err := alternate(max(1, v.bench.runs/2), func() (usage, error) {
		return timed(func() (err error) {
			index, err = lexical.Build(docs)
			return err
		})
	})
	if err != nil {
		return err
	}
	set, err := lexical.NewSet(lexical.Segment{Index: index})
	if err != nil {
		return err
	}
	times, err := sample(vectorAsked*v.bench.runs, func(i int) error {
		_, err := set.Search(queries[i%len(queries)], 20, nil)
		return err
	})
	if err != nil {
		return err
	}
	name := fmt.Sprintf("words of %d texts, best 20, ", texts)
	for i, share := range []float64{0.5, 0.99} {
		took := quantile(times, share)
		v.bench.row(fmt.Sprintf("%sp%g", name, 100*share), short(took), "", short(took), float64(took.Nanoseconds())/1e3, []float64{25, 150}[i], " µs")
	}
	v.bench.row(name+"built in", short(built[0].wall), "", short(built[0].wall), ms(built[0].wall), 500, " ms")
	size := float64(len(index.Bytes())) / 1e6
	v.bench.row(name+"size", fmt.Sprintf("%.1f MB", size), "", fmt.Sprintf("%.1f MB", size), size, 15, " MB")
	return nil
}
