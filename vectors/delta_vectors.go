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

// The vectors of the snapshot are never changed; a bitmap selects the live ones. Those of the delta are a separate
// index that each delta inherits from the one before: removed vectors are deleted from it, and new ones inserted.

// deltaVectors is the index of the vectors of a delta, and the same as bytes.
type deltaVectors struct {
	*knn.Index
	bytes []byte
}

// openDeltaVectors opens the vectors of a delta; nil if it has none.
func (s *Stored) openDeltaVectors(data []byte) (*deltaVectors, error) {
	if s.near == nil || len(data) == 0 {
		return nil, nil
	}
	opened, err := knn.Open(data)
	if err != nil {
		return nil, damaged(err)
	}
	if opened.Dims() != s.meta.Dims {
		return nil, ErrDamaged
	}
	return &deltaVectors{opened, data}, nil
}

// copyNear returns an index with the same vectors, if there are any, that may be changed.
func (d *delta) copyNear(o knn.Options) (*knn.Index, error) {
	if d == nil || d.near == nil {
		return knn.New(o)
	}
	return knn.Open(d.near.bytes)
}

// embedChanges keeps the vectors of the previous delta whose texts are still in fresh, and makes the others.
func (s *Stored) embedChanges(ctx context.Context, fresh []*graph.Item, was *delta) error {
	s.delta.near = nil
	if s.near == nil {
		return nil
	}
	next, err := was.copyNear(s.linking())
	if err != nil {
		return damaged(err)
	}
	digests, stays := was.digests(), map[uint64]bool{}
	var missing []*graph.Item
	for _, it := range fresh {
		digest, known := digests[it.ID]
		if known && digest == it.Digest && was.hasVector(it.ID) {
			stays[graph.HashID(it.ID)] = true
		} else if hasText(it) {
			missing = append(missing, it)
		}
	}
	next.Delete(idsExcept(next, stays)...)
	made, err := s.vectorsOf(ctx, missing)
	if err != nil {
		return err
	}
	if err := next.Put(made...); err != nil {
		return damaged(err)
	}
	if next.Len() > 0 {
		s.delta.near = &deltaVectors{next, next.AppendTo(nil)}
	}
	return nil
}

// hasVector reports whether the delta has the vector of a text.
func (d *delta) hasVector(id string) bool {
	near := d.vectors()
	if near == nil {
		return false
	}
	_, ok := near.Slot(graph.HashID(id))
	return ok
}

// vectorsOf embeds texts. If the embedder is not available, it returns none and warns.
func (s *Stored) vectorsOf(ctx context.Context, items []*graph.Item) ([]knn.Item, error) {
	b := &building{Options: s.Options, ctx: ctx}
	b.Dims = s.meta.Dims
	made := make([]knn.Item, len(items))
	err := b.embed(s.embedder, items, func(from int, vectors [][]float32) error {
		for i, v := range vectors {
			made[from+i] = knn.Item{ID: graph.HashID(items[from+i].ID), Vector: v}
		}
		return nil
	})
	if errors.Is(err, embed.ErrUnavailable) {
		s.Warn(fmt.Errorf("what changed is found by its words only, until vectors can be had: %w", err))
		return nil, nil
	}
	// Of two ids with one hash, which is all but impossible, the second is found by its words only.
	slices.SortStableFunc(made, func(a, b knn.Item) int { return cmp.Compare(a.ID, b.ID) })
	return slices.CompactFunc(made, func(a, b knn.Item) bool { return a.ID == b.ID }), err
}

// lacking reports whether the delta has no vector of a fresh text.
func (x *Index) lacking(fresh []*graph.Item) bool {
	return x.Stored.near != nil && slices.ContainsFunc(fresh, func(it *graph.Item) bool { return hasText(it) && !x.Stored.delta.hasVector(it.ID) })
}

// vectors returns the index of the delta's vectors; nil if it has none.
func (d *delta) vectors() *knn.Index {
	if d == nil || d.near == nil {
		return nil
	}
	return d.near.Index
}

// embedding makes the vectors of some items.
type embedding struct {
	building *building
	embed.Embedder
	vectors [][]float32 // of the items; of an item of several pieces the sum of theirs
	several []bool
	texts   []string // that wait, and the items that they are of
	of      []int
}

// flush embeds the pending texts.
func (m *embedding) flush(ctx context.Context) error {
	if len(m.texts) == 0 {
		return nil
	}
	made, err := m.Embed(ctx, m.texts)
	if err == nil {
		err = checkVectors(made, len(m.texts), m.building.Dims)
	}
	if err != nil {
		return err
	}
	for n, v := range made {
		i := m.of[n]
		if m.vectors[i] == nil {
			m.vectors[i] = v
			continue
		}
		if !m.several[i] { // a vector may be the embedder's own
			m.vectors[i], m.several[i] = slices.Clone(m.vectors[i]), true
		}
		addTo(m.vectors[i], v)
	}
	m.texts, m.of = m.texts[:0], m.of[:0]
	return nil
}
