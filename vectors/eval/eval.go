package eval

import (
	"cmp"
	"maps"
	"slices"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/vectors/lexical"
)

// Depth is how far down the rankings are looked at that are fused.
const Depth = 100

// place is how many of the first hits count: the 10 of MRR@10 and recall@10.
const place = 10

// fuseK is the constant of reciprocal rank fusion, from the paper.
const fuseK = 60

// Ranker lists the functions that fit a question, by their numbers, best first; at most limit.
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

// Measure asks for these functions by their questions, or by the named ones. The error is one of rank.
func Measure(functions []Function, asked []int, named bool, rank Ranker) (Figures, error) {
	out := Figures{Questions: len(asked)}
	for _, n := range asked {
		question := functions[n].Question
		if named {
			question = functions[n].Named
		}
		hits, err := rank(question, place)
		if err != nil {
			return Figures{}, err
		}
		at := slices.IndexFunc(hits[:min(place, len(hits))], func(hit int) bool { return functions[hit].ID == functions[n].ID })
		if at >= 0 {
			out.MRR += 1 / float64(at+1)
			out.Recall++
		}
	}
	if len(asked) > 0 {
		out.MRR /= float64(len(asked))
		out.Recall /= float64(len(asked))
	}
	return out, nil
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
