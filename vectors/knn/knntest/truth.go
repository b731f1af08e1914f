package knntest

import (
	"cmp"
	"math"
	"slices"

	"reconcile.dev/reconcile/vectors/kernel"
)

// Neighbor is a row and its cosine similarity to a query.
type Neighbor struct {
	Row        uint32
	Similarity float32
}

// Truth returns the truth about the data's queries: the k neighbors of each with the most similar rows, the most
// similar first, ties by row. The search is exhaustive. The result is computed once, and must not be changed.
func (d *Data) Truth(k int) [][]Neighbor {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.truths[k] == nil {
		d.truths[k] = d.TruthWhere(k, nil)
	}
	return d.truths[k]
}

// While they are compared, rowsAtOnce and queriesAtOnce vectors of 768 components stay in a processor's second-level
// cache.
const (
	rowsAtOnce    = 64
	queriesAtOnce = 16
)

// TruthWhere returns for each query of the data the k neighbors with the most similar rows among those that match, by
// exhaustive search of blocks of rows in parallel; nil matches all.
func (d *Data) TruthWhere(k int, match func(row uint32) bool) [][]Neighbor {
	found := make([][]Neighbor, d.Queries)
	parallel((d.Queries+queriesAtOnce-1)/queriesAtOnce, func(block int) {
		first := block * queriesAtOnce
		last := min(first+queriesAtOnce, d.Queries)
		for from := 0; from < d.N; from += rowsAtOnce {
			for q := first; q < last; q++ {
				found[q] = d.nearer(found[q], k, q, from, match)
			}
		}
	})
	return found
}

// nearer adds to the best k rows of a query those of the block that begins with row from.
func (d *Data) nearer(best []Neighbor, k, query, from int, match func(row uint32) bool) []Neighbor {
	q := d.Query(query)
	for i := from; i < min(from+rowsAtOnce, d.N); i++ {
		if match != nil && !match(uint32(i)) {
			continue
		}
		n := Neighbor{uint32(i), kernel.Dot(q, d.Vector(i))}
		if len(best) == k && order(n, best[k-1]) > 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, n, order)
		if best = slices.Insert(best, at, n); len(best) > k {
			best = best[:k]
		}
	}
	return best
}

func order(a, b Neighbor) int {
	return cmp.Or(cmp.Compare(b.Similarity, a.Similarity), cmp.Compare(a.Row, b.Row))
}

// rounding is the maximum difference of two computations of one similarity.
const rounding = 2e-6

// Recall returns the fraction of the true neighbours of a query that were found, 0 to 1. A row that is as similar as the
// last of them also counts.
func (d *Data) Recall(query int, truth []Neighbor, found []uint32) float64 {
	if len(truth) == 0 {
		return 1
	}
	limit := truth[len(truth)-1].Similarity - rounding
	hits := 0
	seen := slices.Clone(found)
	slices.Sort(seen)
	for _, row := range slices.Compact(seen) {
		if int(row) < d.N && kernel.Dot(d.Query(query), d.Vector(int(row))) >= limit {
			hits++
		}
	}
	return min(1, float64(hits)/float64(len(truth)))
}

// lid estimates the local intrinsic dimension of the data, from the logarithms of the distances between each query and
// its k true nearest neighbours.
func (d *Data) lid(k int) float64 {
	sum := 0.0
	for _, near := range d.Truth(k) {
		farthest := distance(near[k-1])
		logs := 0.0
		for _, n := range near[:k-1] {
			logs += math.Log(farthest / distance(n))
		}
		sum += float64(k-1) / logs
	}
	return sum / float64(d.Queries)
}

// distance is the Euclidean distance of vectors of length one.
func distance(n Neighbor) float64 { return math.Sqrt(max(1e-12, 2-2*float64(n.Similarity))) }
