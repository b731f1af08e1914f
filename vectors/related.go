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
	s.answer.Results = s.weighed(found)
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
	if f == nil {
		return 0
	}
	if f.ByWords.Rank == 0 {
		return max(f.ByVector.Score, 0)
	}
	best := f.ByWords.Score
	for _, other := range s.places {
		best = max(best, other.ByWords.Score)
	}
	return f.ByWords.Score / best
}

// weight is what a search by relation ranks a node by. Most are not in the answer: what only that needs is made later.
type weight struct {
	ref         graph.Ref
	score, came float64 // the final score, and what of it came over edges
	steps       []graph.Step
}

// weighed are the results of a search by relation, which came over edges to what was found, or are alike to the query.
func (s *search) weighed(found []graph.Result) []Found {
	alpha := cmp.Or(s.Expansion.Alpha, graph.DefaultAlpha)
	all := make([]weight, 0, len(found)+len(s.places))
	var came []float64 // ascending
	take := func(w weight) {
		w.score = alpha*s.similarity(w.ref) + (1-alpha)*w.came
		if w.score < s.Expansion.MinScore {
			return
		}
		all = append(all, w)
		if w.came > 0 {
			came = append(came, w.came)
		}
	}
	over := make(map[graph.Ref]bool, len(s.places))
	for i := range found {
		f := &found[i]
		if f.GraphScore > 0 && s.accepts(f.Node) {
			take(weight{ref: f.Node, came: f.GraphScore, steps: f.Steps})
			if s.places[f.Node] != nil {
				over[f.Node] = true
			}
		}
	}
	for r := range s.places {
		if !over[r] {
			take(weight{ref: r})
		}
	}
	slices.Sort(came)
	best := s.heaviest(all)
	out := make([]Found, len(best))
	for i, w := range best {
		out[i] = s.related(w, all, came)
	}
	return out
}

// heaviest are as many of all as are asked for, those with the highest score first, equals in the order of their ids.
func (s *search) heaviest(all []weight) []weight {
	scores := make([]float64, len(all))
	for i := range all {
		scores[i] = all[i].score
	}
	slices.Sort(scores)
	least := 0.0
	if len(scores) > s.Limit {
		least = scores[len(scores)-s.Limit]
	}
	var best []weight
	for _, w := range all {
		if w.score >= least {
			best = append(best, w)
		}
	}
	slices.SortFunc(best, func(a, b weight) int { return cmp.Or(cmp.Compare(b.score, a.score), s.byID(a.ref, b.ref)) })
	return best[:min(len(best), s.Limit)]
}

// related is a result: what was found of it before, and by what it came over edges. Its rank among those is 1 more than how
// many got more, or as much and have an id that is less; came are the scores of all that got any, ascending.
func (s *search) related(w weight, all []weight, came []float64) Found {
	f := Found{}
	if p := s.places[w.ref]; p != nil {
		f = *p
	}
	f.Node, f.Score = s.graph.Node(w.ref), w.score
	if w.came == 0 {
		return f
	}
	after, _ := slices.BinarySearchFunc(came, w.came, func(c, of float64) int {
		if c <= of {
			return -1
		}
		return 1
	})
	rank := 1 + len(came) - after
	for i := range all {
		if all[i].came == w.came && s.byID(all[i].ref, w.ref) < 0 {
			rank++
		}
	}
	f.ByGraph = Place{rank, w.came}
	for _, step := range w.steps {
		f.Via = append(f.Via, s.graph.Edge(step))
	}
	return f
}
