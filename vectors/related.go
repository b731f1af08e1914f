package vectors

import (
	"cmp"
	"context"
	"slices"

	"reconcile.dev/reconcile/vectors/graph"
)

// reached is how many nodes are looked at, before the filters, of what a search by relation comes to.
const reached = 5000

// seedCutoff is the factor below the best similarity from which on a node is not a start.
const seedCutoff = 4

// byRelation searches by meaning, expands the best results along edges, and ranks all reached nodes by alpha *
// similarity + (1 - alpha) * the graph score. It starts from the best nodes of any kind and passes through any; the
// filters apply only to the results, so that documents about code are found from that code. Without vectors it starts
// from the search by words, and the similarity of a text is its score relative to the best.
func (s *search) byRelation(ctx context.Context) error {
	v, err := s.vector(ctx)
	if err != nil {
		return err
	}
	free := s
	if !s.all() {
		free = &search{index: s.index, Query: s.Query, answer: s.answer, places: map[graph.Ref]*Found{}}
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
		if score := free.similarity(r); score*seedCutoff >= free.similarity(ranked[0]) {
			from = append(from, graph.Seed{Node: r, Score: score})
		}
	}
	x := s.Expansion
	x.MinScore, x.Max = 0, reached
	found, err := s.index.graph.Expand(from, x)
	if err != nil {
		return err
	}
	s.answer.Results = s.weighed(found)
	return nil
}

// begin finds the nodes that a search by relation starts from.
func (s *search) begin(v []float32) error {
	if v == nil {
		return s.byWords()
	}
	return s.byNearest(v)
}

// similarity returns how similar a node, found by vectors or else by words, is to the query: 0 to 1.
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

// weight is the rank data of a node in a search by relation. The rest of a result is made only for nodes in the
// answer.
type weight struct {
	ref         graph.Ref
	score, came float64       // the final score, and what of it came over edges
	over        *graph.Result // nil if nothing came over edges
}

// weighed returns the results of a search by relation, which were reached over edges or are similar to the query.
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
			take(weight{ref: f.Node, came: f.GraphScore, over: f})
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

// heaviest returns as many of all as the limit allows, the highest score first, equal ones in the order of their ids.
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

// related makes a result from what is known of the node and from its graph score. Its rank by graph is 1 more than the
// number of nodes with a higher score, or with the same score and a smaller id; came are all graph scores, ascending.
func (s *search) related(w weight, all []weight, came []float64) Found {
	f := Found{}
	if p := s.places[w.ref]; p != nil {
		f = *p
	}
	f.Node, f.Score = s.index.graph.Node(w.ref), w.score
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
	for _, step := range w.over.Steps() {
		f.Via = append(f.Via, s.index.graph.Edge(step))
	}
	return f
}

// byGraph expands the best results along edges. They keep most of their own score there, so that a result by words and
// vectors does not rank below the neighbours that are reached from it.
func (s *search) byGraph() error {
	ranked := s.ranked()
	var from []graph.Seed
	for _, r := range ranked[:min(len(ranked), seeds)] {
		if s.fuse(r) == 0 {
			continue // it has nothing but the name
		}
		from = append(from, graph.Seed{Node: r, Score: s.fuse(r) / (2.0 / (smooth + 1))})
	}
	found, err := s.index.graph.Expand(from, graph.Expansion{
		Filter: graph.Filter{Domains: s.Domains, Types: s.Types}, Max: candidates,
	})
	if err != nil {
		return err
	}
	rank := 0
	for _, f := range found {
		if !s.accepts(f.Node) {
			continue
		}
		rank++
		p := s.place(f.Node)
		p.ByGraph = Place{rank, f.FinalScore}
		for _, step := range f.Steps() {
			p.Via = append(p.Via, s.index.graph.Edge(step))
		}
	}
	return nil
}
