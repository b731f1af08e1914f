// Package eval measures the quality of search on any Go program: the first sentence of a function's documentation,
// removed from the indexed text, must find the function among all others. It uses the index and the search of the
// program itself.
//
// # What is asked
//
// The queries are the first sentences of the doc comments of functions and methods with exported names, without their
// own name, which begins most sentences. A sentence with fewer than three remaining terms, or with the same text for
// several functions, identifies no function, and is left out. The first sentence of every function is removed from the
// source before indexing.
//
// # What is measured
//
// MRR@10 is the mean of one over the rank of the right answer, recall@10 the share of queries with the right answer
// among the first ten functions and methods of the result.
package eval

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/vectors"
	"reconcile.dev/reconcile/vectors/graph"
	"reconcile.dev/reconcile/vectors/source"
)

// place is how many of the first hits count: the 10 of MRR@10 and recall@10.
const place = 10

// Ranker lists the ids of functions that fit a question, best first; at most limit. It is safe for concurrent use.
type Ranker func(question string, limit int) ([]string, error)

// Figures are the results of a measurement.
type Figures struct {
	Questions int
	// MRR is the mean of 1/rank of the right answer, 0 where it is not among the first ten.
	MRR float64
	// Recall is the share of questions whose answer is among the first ten.
	Recall float64
}

// Index builds a vectors index of Go files and modules, with one input per folder, as search does.
func Index(ctx context.Context, files []source.File, mods source.Modules, o vectors.Options) (*vectors.Index, error) {
	folders := map[string][]source.File{}
	for _, f := range files {
		dir := source.Folder(f.Path)
		folders[dir] = append(folders[dir], f)
	}
	inputs := make([]vectors.Input, 0, len(folders))
	for dir, texts := range folders {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		f := source.ParseGo(texts, runtime.GOMAXPROCS(0))
		parts, _ := f.Parts(nil, mods, runtime.GOMAXPROCS(0))
		inputs = append(inputs, vectors.Input{Name: "go:" + dir, Part: f.Package()})
		for _, p := range parts {
			inputs = append(inputs, vectors.Input{Name: "go:" + p.Items[0].Path, Part: p})
		}
	}
	made, err := vectors.Build(ctx, inputs, o)
	if err != nil {
		return nil, err
	}
	return made.Open(o)
}

// By returns a ranker that searches the index for functions and methods in a mode, and gives the aliases of the
// results.
func By(ctx context.Context, x *vectors.Index, mode vectors.Mode) Ranker {
	return func(question string, limit int) ([]string, error) {
		a, err := x.Search(ctx, vectors.Query{
			Text: question, Mode: mode, Types: []graph.NodeType{graph.Function, graph.Method}, Limit: limit,
		})
		if err != nil {
			return nil, err
		}
		out := make([]string, len(a.Results))
		for i := range a.Results {
			out[i], _ = source.Alias(a.Results[i].ID) // a second symbol of the same name has none, and is not an answer
		}
		return out, errors.Join(a.Warnings...)
	}
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
				places[i], failed[w] = find(&functions[asked[i]], named, rank)
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
func find(f *Function, named bool, rank Ranker) (int, error) {
	question := f.Question
	if named {
		question = f.Named
	}
	hits, err := rank(question, place)
	return 1 + slices.Index(hits, f.ID), err
}
