package vectors

import (
	"cmp"
	"context"
	"slices"

	"reconcile.dev/reconcile/vectors/graph"
)

// reached is how many nodes are looked at, before the filters, of what a search by relation comes to.
const reached = 5000

// faint says what is not started from: what is so many times less alike than the best.
const faint = 4

// byRelation goes by meaning first, from the best of that over edges, and ranks what it comes to, and what is alike, by
// alpha * similarity + (1 - alpha) * what came over edges. It starts from the best of everything and goes anywhere; the
// filters hold for the results: the documents about the code that is meant are found from the code. Where there are no
// vectors it goes by words, each text as similar as its score is near the best.
func (s *search) byRelation(ctx context.Context) error {
	v, err := s.vector(ctx)
	if err != nil {
		return err
	}
	free := s
	if !s.all() {
		free = &search{Index: s.Index, Query: s.Query, answer: s.answer, places: map[graph.Ref]*Found{}}
		free.Domains, free.Types, free.Labels = nil, nil, nil
		if err := free.begin(v); err != nil {
			return err
		}
	}
	if err := s.begin(v); err != nil {
		return err
	}
	var from []graph.Seed
	ranked := free.ranked()
	for _, r := range ranked[:min(len(ranked), seeds)] {
		if score := free.similarity(r); score*faint >= free.similarity(ranked[0]) {
			from = append(from, graph.Seed{Node: r, Score: score})
		}
	}
	x := s.Expansion
	x.MinScore, x.Max = 0, reached
	found, err := s.graph.Expand(from, x)
	if err != nil {
		return err
	}
	for _, f := range found {
		if s.accepts(f.Node) && f.GraphScore > 0 {
			p := s.place(f.Node)
			p.ByGraph.Score = f.GraphScore
			for _, step := range f.Steps {
				p.Via = append(p.Via, s.graph.Edge(step))
			}
		}
	}
	s.answer.Results = s.weighed()
	return nil
}

// begin finds what a search by relation starts from.
func (s *search) begin(v []float32) error {
	if v == nil {
		return s.byWords()
	}
	return s.byNearest(v)
}

// similarity is how alike to the query a node is that was found by vectors, or else by words: 0 to 1.
func (s *search) similarity(r graph.Ref) float64 {
	f := s.places[r]
	if f.ByWords.Rank == 0 {
		return max(f.ByVector.Score, 0)
	}
	best := f.ByWords.Score
	for _, other := range s.places {
		best = max(best, other.ByWords.Score)
	}
	return f.ByWords.Score / best
}

// weighed are the results of a search by relation.
func (s *search) weighed() []Found {
	alpha := cmp.Or(s.Expansion.Alpha, graph.DefaultAlpha)
	var refs []graph.Ref
	for r, f := range s.places {
		f.Score = alpha*s.similarity(r) + (1-alpha)*f.ByGraph.Score
		if f.Score >= s.Expansion.MinScore {
			refs = append(refs, r)
		}
	}
	rank := func(by func(*Found) float64) {
		slices.SortFunc(refs, func(a, b graph.Ref) int {
			return cmp.Or(cmp.Compare(by(s.places[b]), by(s.places[a])), s.byID(a, b))
		})
	}
	rank(func(f *Found) float64 { return f.ByGraph.Score })
	for i, r := range refs {
		if f := s.places[r]; f.ByGraph.Score > 0 {
			f.ByGraph.Rank = i + 1
		}
	}
	rank(func(f *Found) float64 { return f.Score })
	out := make([]Found, 0, s.Limit)
	for _, r := range refs[:min(len(refs), s.Limit)] {
		f := s.places[r]
		f.Node = s.graph.Node(r)
		out = append(out, *f)
	}
	return out
}
