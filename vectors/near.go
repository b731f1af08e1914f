package vectors

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"reconcile.dev/reconcile/vectors/embed"
	"reconcile.dev/reconcile/vectors/graph"
	"reconcile.dev/reconcile/vectors/knn"
)

// The vectors of the snapshot stay as they are; a bitmap says which of them count. Those of the delta are an index of
// their own, that goes from one delta to the next: what is no more is deleted from it, and what is new is put.

// nearVectors is the index of the vectors of a delta, and the same as bytes.
type nearVectors struct {
	*knn.Index
	bytes []byte
}

// openNearer opens the vectors of a delta; nil if there are none.
func (x *Index) openNearer(data []byte) (*nearVectors, error) {
	if x.near == nil || data == nil {
		return nil, nil
	}
	opened, err := knn.Open(data)
	if err != nil {
		return nil, damaged(err)
	}
	if opened.Dims() != x.meta.Dims {
		return nil, ErrDamaged
	}
	return &nearVectors{opened, data}, nil
}

// copyNear is an index with the same vectors, if there are any, that may be changed.
func (d *delta) copyNear(o knn.Options) (*knn.Index, error) {
	if d == nil || d.near == nil {
		return knn.New(o)
	}
	return knn.Open(d.near.bytes)
}

// slotsBut are the slots of the snapshot's vectors without those of some nodes; nil: all.
func (x *Index) slotsBut(passed map[graph.Ref]bool) *knn.Bitmap {
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

// embedChanges brings the vectors of the index before, as far as fresh texts still have them, and makes the others.
func (x *Index) embedChanges(ctx context.Context, fresh []*graph.Item, was *Index) error {
	x.delta.near = nil
	if x.near == nil {
		return nil
	}
	next, err := was.delta.copyNear(knn.Options{Dims: x.meta.Dims, Threads: x.Threads})
	if err != nil {
		return damaged(err)
	}
	stays := map[uint64]bool{}
	var missing []*graph.Item
	for _, it := range fresh {
		if id := graph.HashID(it.ID); was.hasVectorOf(it) {
			stays[id] = true
		} else if hasText(it) {
			missing = append(missing, it)
		}
	}
	next.Delete(idsBut(next, stays)...)
	made, err := x.vectorsOf(ctx, missing)
	if err != nil {
		return err
	}
	if err := next.Put(made...); err != nil {
		return damaged(err)
	}
	if next.Len() > 0 {
		x.delta.near = &nearVectors{next, next.AppendTo(nil)}
	}
	return nil
}

// idsBut are the ids of an index but for those that stay.
func idsBut(x *knn.Index, stays map[uint64]bool) []uint64 {
	var out []uint64
	for slot := range uint32(x.Slots()) {
		if id, ok := x.ID(slot); ok && !stays[id] {
			out = append(out, id)
		}
	}
	return out
}

// vectorsOf embeds texts. When the embedder cannot be had there are none, and that is a warning.
func (x *Index) vectorsOf(ctx context.Context, items []*graph.Item) ([]knn.Item, error) {
	b := &building{Options: x.Options, ctx: ctx}
	b.Dims = x.meta.Dims
	made := make([]knn.Item, len(items))
	err := b.embed(x.embedder, items, func(from int, vectors [][]float32) error {
		for i, v := range vectors {
			made[from+i] = knn.Item{ID: graph.HashID(items[from+i].ID), Vector: v}
		}
		return nil
	})
	if errors.Is(err, embed.ErrUnavailable) {
		x.Warn(fmt.Errorf("what changed is found by its words only, for now: %w", err))
		return nil, nil
	}
	// Of two ids with one hash, which is all but impossible, the second is found by its words only.
	slices.SortStableFunc(made, func(a, b knn.Item) int { return cmp.Compare(a.ID, b.ID) })
	return slices.CompactFunc(made, func(a, b knn.Item) bool { return a.ID == b.ID }), err
}

// Lacks reports whether there are texts without vectors, because the embedder could not be had when they were indexed.
func (x *Index) Lacks() bool { return x.near == nil && !x.WordsOnly || x.lacks }

// lacking reports whether the delta has no vector of a fresh text.
func (x *Index) lacking(fresh []*graph.Item) bool {
	return x.near != nil && slices.ContainsFunc(fresh, func(it *graph.Item) bool { return hasText(it) && !x.hasVectorOf(it) })
}

// hasVectorOf reports whether the delta has the vector of a text.
func (x *Index) hasVectorOf(it *graph.Item) bool {
	if x.nearer == nil {
		return false
	}
	if r, ok := x.graph.Find(it.ID); !ok || x.graph.Node(r).Digest != it.Digest {
		return false
	}
	_, ok := x.nearer.Slot(graph.HashID(it.ID))
	return ok
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
