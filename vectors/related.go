package vectors

import (
	"context"

	"reconcile.dev/reconcile/vectors/graph"
)

// reached is how many nodes are ranked, before the filters, of what a search by relation comes to.
const reached = 5000

// byRelation goes by meaning first, from the best of that over edges, and ranks all by
// alpha * similarity + (1 - alpha) * what came over edges. The filters of the query hold for the results, and neither for
// where it starts nor for where it goes: the documents about the code that is meant are found from the code. Where there
// are no vectors it starts from what has the words, each as similar as its score is near the best.
func (s *search) byRelation(ctx context.Context) error {
	start := &search{Index: s.Index, Query: s.Query, answer: s.answer, places: map[graph.Ref]*Found{}}
	start.Domains, start.Types, start.Labels = nil, nil, nil
	if err := start.byVector(ctx); err != nil {
		return err
	}
	if len(s.answer.Warnings) > 0 {
		if err := start.byWords(); err != nil {
			return err
		}
	}
	x := s.Expansion
	x.Max = reached
	found, err := s.graph.Expand(start.asSeeds(), x)
	if err != nil {
		return err
	}
	for _, f := range found {
		if !s.accepts(f.Node) || len(s.answer.Results) == s.Limit {
			continue
		}
		out := Found{Node: s.graph.Node(f.Node), Score: f.FinalScore}
		if p := start.places[f.Node]; p != nil {
			out.ByWords, out.ByVector = p.ByWords, p.ByVector
		}
		if f.GraphScore > 0 {
			out.ByGraph = Place{len(s.answer.Results) + 1, f.GraphScore}
		}
		for _, step := range f.Steps {
			out.Via = append(out.Via, s.graph.Edge(step))
		}
		s.answer.Results = append(s.answer.Results, out)
	}
	return nil
}

// asSeeds are the best that were found, with how similar they are.
func (s *search) asSeeds() []graph.Seed {
	ranked := s.ranked()
	var out []graph.Seed
	for _, r := range ranked[:min(len(ranked), seeds)] {
		f := s.places[r]
		score := f.ByVector.Score
		if f.ByVector.Rank == 0 {
			score = f.ByWords.Score / s.places[ranked[0]].ByWords.Score
		}
		out = append(out, graph.Seed{Node: r, Score: score})
	}
	return out
}
