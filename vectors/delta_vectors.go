package vectors

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
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
	if s.near == nil || data == nil {
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

// slotsExcept are the slots of the snapshot's vectors without those of some nodes; nil: all.
func (x *Index) slotsExcept(passed map[graph.Ref]bool) *knn.Bitmap {
	if x.near == nil || len(passed) == 0 {
		return nil
	}
	live := knn.NewBitmap(x.near.Slots())
	for r := range passed {
		if slot, ok := x.near.Slot(graph.HashID(x.baseGraph.ID(r))); ok {
			live.Remove(slot)
		}
	}
	return live
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

// digests are those of the texts of a delta that has vectors, by id: of several the one of the input whose name comes
// first.
func (d *delta) digests() map[string]uint64 {
	out := map[string]uint64{}
	if d.vectors() == nil {
		return out
	}
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(d.inputs))) {
		items := d.inputs[name].Items
		for i := range items {
			out[items[i].ID] = items[i].Digest
		}
	}
	return out
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

// idsExcept are the ids of an index but for those that stay.
func idsExcept(x *knn.Index, stays map[uint64]bool) []uint64 {
	var out []uint64
	for slot := range uint32(x.Slots()) {
		if id, ok := x.ID(slot); ok && !stays[id] {
			out = append(out, id)
		}
	}
	return out
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

// LacksVectors reports whether the index lacks vectors of some texts, because the embedder was not available when they
// were indexed.
func (x *Index) LacksVectors() bool { return x.near == nil && !x.WordsOnly || x.lacks }

// lacking reports whether the delta has no vector of a fresh text.
func (x *Index) lacking(fresh []*graph.Item) bool {
	return x.near != nil && slices.ContainsFunc(fresh, func(it *graph.Item) bool { return hasText(it) && !x.delta.hasVector(it.ID) })
}

// place is where the node of a vector of the snapshot is.
func (x *Index) place(slot uint32) graph.Ref {
	return graph.Ref(binary.LittleEndian.Uint32(x.slotted[4*slot:]))
}

// placesSound compares the places of all nodes of vectors with their ids.
func (x *Index) placesSound() bool {
	for slot := range uint32(x.near.Slots()) {
		if id, ok := x.near.ID(slot); !ok || graph.HashID(x.baseGraph.ID(x.place(slot))) != id {
			return false
		}
	}
	return true
}
