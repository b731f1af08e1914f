package eval

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"sync"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/vectors/embed"
	"reconcile.dev/reconcile/vectors/kernel"
	"reconcile.dev/reconcile/vectors/lexical"
)

// Depth is how far down the rankings are looked at that are fused.
const Depth = 100

// place is how many of the first hits count: the 10 of MRR@10 and recall@10.
const place = 10

// fuseK is the constant of reciprocal rank fusion, from the paper.
const fuseK = 60

// Ranker lists the functions that fit a question, by their numbers, best first; at most limit. It is safe for concurrent
// use.
type Ranker func(question string, limit int) ([]int, error)

// Figures are what was measured.
type Figures struct {
	Questions int
	// MRR is the mean of 1/rank of the right answer, 0 where it is not among the first ten.
	MRR float64
	// Recall is the share of questions whose answer is among the first ten.
	Recall float64
}

// Asked lists the numbers of at most n functions that are asked for, chosen by a hash of their names, so that the same
// are chosen again when functions are added. n of 0 is all. A question that is that of several functions, word for word,
// has no one answer, and is left out.
func Asked(functions []Function, n int) []int {
	who := map[string]string{} // by question; "" for several
	for _, f := range functions {
		if id, there := who[f.Question]; there && id != f.ID {
			who[f.Question] = ""
		} else if !there {
			who[f.Question] = f.ID
		}
	}
	var out []int
	for i, f := range functions {
		if f.Question != "" && who[f.Question] == f.ID {
			who[f.Question] = "" // once, if the system has several
			out = append(out, i)
		}
	}
	slices.SortStableFunc(out, func(a, b int) int {
		return cmp.Compare(xxhash.Sum64String(functions[a].ID), xxhash.Sum64String(functions[b].ID))
	})
	if n > 0 && n < len(out) {
		out = out[:n]
	}
	return out
}

// Measure asks for these functions by their questions, or by the named ones, on all processors. The error is one of rank.
func Measure(functions []Function, asked []int, named bool, rank Ranker) (Figures, error) {
	places := make([]int, len(asked)) // of the right answers among the hits, from 1; 0 for none
	workers := runtime.GOMAXPROCS(0)
	failed := make([]error, workers)
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for i := w; i < len(asked) && failed[w] == nil; i += workers {
				places[i], failed[w] = find(functions, asked[i], named, rank)
			}
		})
	}
	group.Wait()
	out := Figures{Questions: len(asked)}
	for _, at := range places {
		if at > 0 {
			out.MRR += 1 / float64(at)
			out.Recall++
		}
	}
	out.MRR /= float64(max(1, len(asked)))
	out.Recall /= float64(max(1, len(asked)))
	return out, errors.Join(failed...)
}

// find asks for a function, and returns its place among the first hits, from 1, or 0.
func find(functions []Function, number int, named bool, rank Ranker) (int, error) {
	f := &functions[number]
	question := f.Question
	if named {
		question = f.Named
	}
	hits, err := rank(question, place)
	return 1 + slices.IndexFunc(hits, func(hit int) bool { return functions[hit].ID == f.ID }), err
}

// Lexical ranks by words.
func Lexical(functions []Function) (Ranker, error) {
	docs := make([]lexical.Document, len(functions))
	for i, f := range functions {
		docs[i] = lexical.Document{Title: f.Title, Body: f.Body, Key: uint64(i)}
	}
	index, err := lexical.Build(docs)
	if err != nil {
		return nil, err
	}
	set, err := lexical.NewSet(lexical.Segment{Index: index})
	if err != nil {
		return nil, err
	}
	return func(question string, limit int) ([]int, error) {
		hits, err := set.Search(question, limit, nil)
		out := make([]int, len(hits))
		for i, h := range hits {
			out[i] = h.Doc
		}
		return out, err
	}, nil
}

// Vector ranks by the vectors that an embedder makes, comparing each question with all functions.
func Vector(ctx context.Context, functions []Function, e embed.Embedder) (Ranker, error) {
	texts := make([]string, len(functions))
	for i, f := range functions {
		texts[i] = embed.Text(f.Title, f.Body)
	}
	vectors, err := e.Embed(ctx, texts)
	if err != nil {
		return nil, err
	}
	return func(question string, limit int) ([]int, error) {
		asked, err := e.Embed(ctx, []string{question})
		if err != nil {
			return nil, err
		}
		return nearest(vectors, asked[0], limit), nil
	}, nil
}

// nearest lists the numbers of the vectors that are nearest to v, at most limit, in order.
func nearest(vectors [][]float32, v []float32, limit int) []int {
	type hit struct {
		number int
		score  float32
	}
	before := func(a, b hit) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.number, b.number)) }
	best := make([]hit, 0, limit+1) // in order
	for i := range vectors {
		h := hit{i, kernel.Dot(vectors[i], v)}
		if len(best) == limit && (limit == 0 || before(h, best[limit-1]) > 0) {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, h, before)
		best = slices.Insert(best, at, h)[:min(len(best)+1, limit)]
	}
	out := make([]int, len(best))
	for i, h := range best {
		out[i] = h.number
	}
	return out
}

// Fuse ranks by the sum of 1/(60+rank) over rankers, each to Depth (Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion
// outperforms Condorcet and individual Rank Learning Methods", 2009). Equal sums are in the order of the functions.
func Fuse(rankers ...Ranker) Ranker {
	return func(question string, limit int) ([]int, error) {
		score := map[int]float64{}
		for _, rank := range rankers {
			hits, err := rank(question, Depth)
			if err != nil {
				return nil, err
			}
			for at, hit := range hits {
				score[hit] += 1 / float64(fuseK+at+1)
			}
		}
		out := slices.Collect(maps.Keys(score))
		slices.SortFunc(out, func(a, b int) int {
			return cmp.Or(cmp.Compare(score[b], score[a]), cmp.Compare(a, b))
		})
		return out[:min(limit, len(out))], nil
	}
}
