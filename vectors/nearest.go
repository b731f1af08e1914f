package vectors

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"reconcile.dev/reconcile/vectors/embed"
	"reconcile.dev/reconcile/vectors/graph"
	"reconcile.dev/reconcile/vectors/knn"
)

type neighbour struct {
	ref        graph.Ref
	similarity float32
}

// byVector does nothing if the query has no vector.
func (s *search) byVector(ctx context.Context) error {
	v, err := s.vector(ctx)
	if v == nil || err != nil {
		return err
	}
	return s.byNearest(v)
}

func (s *search) byNearest(v []float32) error {
	refs, err := s.nearest(v)
	if err != nil {
		return err
	}
	s.likened = true
	for i, r := range refs {
		s.place(r.ref).ByVector = Place{i + 1, float64(r.similarity)}
	}
	return nil
}

// nearest searches the snapshot and the delta, and merges their results.
func (s *search) nearest(v []float32) ([]neighbour, error) {
	o := knn.SearchOptions{
		K: max(candidates, s.Limit), Ef: s.index.Stored.ef(s.index.Stored.near, s.Thorough), Exact: s.Exact, MinSimilarity: s.MinSimilarity, Filter: s.slots(),
	}
	hits, err := s.index.Stored.near.Search(v, o)
	if err != nil {
		return nil, err
	}
	var out []neighbour
	take := func(hits []knn.Hit) {
		for _, h := range hits {
			if r, ok := s.index.graph.FindHash(h.ID); ok && s.accepts(r) {
				out = append(out, neighbour{r, h.Similarity})
			}
		}
	}
	take(hits)
	if nearer := s.index.Stored.delta.vectors(); nearer != nil {
		o.Filter, o.Ef = s.changedSlots(nearer), s.index.Stored.ef(nearer, s.Thorough)
		if hits, err = nearer.Search(v, o); err != nil {
			return nil, err
		}
		take(hits)
	}
	slices.SortFunc(out, func(a, b neighbour) int {
		return cmp.Or(cmp.Compare(b.similarity, a.similarity), s.byID(a.ref, b.ref))
	})
	return out[:min(len(out), max(candidates, s.Limit))], nil
}

// changedSlots returns the delta's vectors that pass the filters; nil means all.
func (s *search) changedSlots(nearer *knn.Index) *knn.Bitmap {
	if s.all() {
		return nil
	}
	out := &knn.Bitmap{}
	for slot := range uint32(nearer.Slots()) {
		id, _ := nearer.ID(slot)
		if r, ok := s.index.graph.FindHash(id); ok && s.accepts(r) {
			out.Add(slot)
		}
	}
	return out
}

// slots returns the snapshot's vectors that pass the filters; nil means all.
func (s *search) slots() *knn.Bitmap {
	if s.all() {
		return s.index.live
	}
	out, wanted := &knn.Bitmap{}, s.selected()
	for slot := range uint32(s.index.Stored.near.Slots()) {
		if wanted.Has(s.index.place(slot)) && (s.index.live == nil || s.index.live.Has(slot)) {
			out.Add(slot)
		}
	}
	return out
}

// place returns the pending result of a node.
func (s *search) place(r graph.Ref) *Found {
	f := s.places[r]
	if f == nil {
		f = &Found{}
		s.places[r] = f
	}
	return f
}

// vector returns the vector of the query; nil, with a warning, if it is not available.
func (s *search) vector(ctx context.Context) ([]float32, error) {
	if s.index.Stored.near == nil {
		s.warn(ErrNoVectors)
		return nil, nil
	}
	vs, err := s.index.Stored.embedder.Embed(ctx, []string{s.Text})
	if errors.Is(err, embed.ErrUnavailable) {
		s.warn(fmt.Errorf("search went by words only: %w", err))
		return nil, nil
	}
	if err == nil {
		err = checkVectors(vs, 1, s.index.Stored.meta.Dims)
	}
	if err != nil {
		return nil, err
	}
	return vs[0], nil
}

// slotsExcept are the slots of the snapshot's vectors without those of some nodes; nil: all.
func (x *Index) slotsExcept(passed map[graph.Ref]bool) *knn.Bitmap {
	if x.Stored.near == nil || len(passed) == 0 {
		return nil
	}
	live := knn.NewBitmap(x.Stored.near.Slots())
	for r := range passed {
		if slot, ok := x.Stored.near.Slot(graph.HashID(x.Stored.baseGraph.ID(r))); ok {
			live.Remove(slot)
		}
	}
	return live
}
