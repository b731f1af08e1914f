package knn

import (
	"fmt"
	"math"
	"slices"
	"sync/atomic"
)

// never is the version that a slot has died in that lives.
const never = math.MaxUint64

// Put inserts the vectors of items into the index, and replaces those whose IDs are there already. A search sees all of
// them or none. If one is refused, none is put, and the error tells which one and why: errDims, errNotFinite, ErrZero,
// ErrTwice, errFull.
//
// The vector that makes the index large enough for a graph has all others linked, too, which takes a while.
func (x *Index) Put(items ...Item) error {
	seen := make(map[uint64]bool, len(items))
	for _, item := range items {
		if err := x.current.Load().check(item.Vector); err != nil {
			return fmt.Errorf("vector %016x: %w", item.ID, err)
		}
		if seen[item.ID] {
			return fmt.Errorf("vector %016x: %w", item.ID, ErrTwice)
		}
		seen[item.ID] = true
	}
	x.writer.Lock()
	defer x.writer.Unlock()
	if x.current.Load().len()+len(items) > maxVectors {
		return errFull
	}
	for len(items) > 0 {
		n := min(len(items), batchSize)
		x.put(items[:n])
		items = items[n:]
	}
	return nil
}

// Delete removes the vectors with these ids from the index, and returns how many live ones there were. A search sees
// all of them or none.
func (x *Index) Delete(ids ...uint64) int {
	x.writer.Lock()
	defer x.writer.Unlock()
	v := x.next()
	before := v.live
	x.retire(v, ids)
	if v.live == before {
		return 0
	}
	x.adapt(v, before-v.live)
	x.publish(v, func() {
		for _, id := range ids {
			delete(x.slots, id)
		}
	})
	return before - v.live
}

// next returns a copy of the current view for the writer to change.
func (x *Index) next() *vectorView {
	v := *x.current.Load()
	v.version++
	if v.born == nil {
		v.born, v.died = make([]uint64, v.len()), slices.Repeat([]uint64{never}, v.len())
	}
	if v.graph && x.frozen {
		v.base.links, v.upper = slices.Clone(v.base.links), slices.Clone(v.upper)
		x.frozen = false
	}
	return &v
}

// publish makes a view the current one together with its names, and vacuums when enough slots are dead or new.
func (x *Index) publish(v *vectorView, rename func()) {
	x.names.Lock()
	x.current.Store(v)
	rename()
	x.names.Unlock()
	if limit := max(64, v.len()/256); len(x.dead) >= limit || v.live == 0 || x.added >= 16*limit {
		x.vacuum()
	}
}

// retire marks the slots of those IDs that exist as dead.
func (x *Index) retire(v *vectorView, ids []uint64) {
	for _, id := range ids {
		slot, ok := x.Slot(id)
		if !ok || v.died[slot] != never {
			continue
		}
		atomic.StoreUint64(&v.died[slot], v.version)
		x.dead = append(x.dead, slot)
		v.live--
	}
}

// put puts one batch, of checked items.
func (x *Index) put(items []Item) {
	v := x.next()
	ids := make([]uint64, len(items))
	for i, item := range items {
		ids[i] = item.ID
	}
	x.retire(v, ids)
	batch := make([]uint32, len(items))
	w := x.walkers.Get().(*vectorWalker)
	defer x.walkers.Put(w)
	changes, usual := len(items), v.usualSlack()
	for i, item := range items {
		batch[i] = x.slotFor(v, item.ID)
		v.encodeRow(&w.query, item.Vector, w.rotated)
		v.fill(batch[i], item.ID, &w.query)
		if usual > 0 && w.query.slack > unfit*usual {
			changes += unfitCount
		}
	}
	v.live += len(items)
	switch {
	case v.graph:
		x.linkerOf(v).add(batch)
		x.added += len(batch)
	case v.live >= x.options.GraphFrom && v.dims >= graphDims:
		x.refit(v)
		x.linkAll(v)
		x.recalibrate(v)
	case v.inLists():
		w.enlist(v, batch)
	}
	x.adapt(v, changes)
	x.publish(v, func() {
		for i, id := range ids {
			x.slots[id] = batch[i]
		}
	})
}

// slotFor allocates a slot of the tail for an ID, with an empty block of links and upper links if there is a graph. A free
// slot is used when no reader is left that may still read its old content.
func (x *Index) slotFor(v *vectorView, id uint64) uint32 {
	var slot uint32
	if n := len(v.free); n > 0 && x.readers.reached(x.freed) {
		slot = v.free[n-1]
		v.free = v.free[:n-1]
		atomic.StoreUint64(&v.born[slot], v.version)
		atomic.StoreUint64(&v.died[slot], never)
	} else {
		slot = uint32(v.len())
		v.tail.grow(v.shape, v.graph)
		v.born, v.died = append(v.born, v.version), append(v.died, never)
	}
	s, row := v.at(slot)
	s.upperStart[row] = noSlot
	if v.graph {
		v.setLinks(slot, 0, nil)
		s.upperStart[row] = x.allocUpper(v, v.levelOf(id))
	}
	return slot
}

// allocUpper returns the start of a block of upper links for that many levels: a spare one, or a new one.
func (x *Index) allocUpper(v *vectorView, levels int) uint32 {
	if levels == 0 {
		return noSlot
	}
	if n := len(x.spare[levels]); n > 0 && x.readers.reached(x.freed) {
		at := x.spare[levels][n-1]
		x.spare[levels] = x.spare[levels][:n-1]
		for i := range levels * v.m {
			atomic.StoreUint32(&v.upper[int(at)+i], noSlot)
		}
		return at
	}
	at := uint32(len(v.upper))
	v.upper = append(v.upper, slices.Repeat([]uint32{noSlot}, levels*v.m)...)
	return at
}

// linkAll makes the graph of a view that has none.
func (x *Index) linkAll(v *vectorView) {
	v.makeBlocks()
	slots := make([]uint32, 0, v.live)
	for slot := range uint32(v.len()) {
		if v.has(slot) {
			slots = append(slots, slot)
		}
	}
	slices.SortFunc(slots, func(a, b uint32) int { return compareIDs(v.id(a), v.id(b)) })
	for _, slot := range slots {
		s, row := v.at(slot)
		s.upperStart[row] = x.allocUpper(v, v.levelOf(s.ids[row]))
	}
	l := x.linkerOf(v)
	l.addAll(slots, nil)
	l.connect()
	x.frozen = false
}

// sorted checks items and returns their indexes by ID.
func (v *vectorView) sorted(items []Item) ([]uint32, error) {
	order := make([]uint32, len(items))
	for i, item := range items {
		order[i] = uint32(i)
		if err := v.coder.check(item.Vector); err != nil {
			return nil, fmt.Errorf("vector %016x: %w", item.ID, err)
		}
	}
	slices.SortFunc(order, func(a, b uint32) int { return compareIDs(items[a].ID, items[b].ID) })
	for i := 1; i < len(order); i++ {
		if id := items[order[i]].ID; id == items[order[i-1]].ID {
			return nil, fmt.Errorf("vector %016x: %w", id, ErrTwice)
		}
	}
	return order, nil
}

// A new vector whose code is off by more than unfit times as much as usual counts as unfitCount more changes: codes were made to fit
// other vectors.
const unfit, unfitCount = 1.5, 8

// usualSlack is the mean distance of some vectors of the base from their codes; 0 without a base.
func (v *vectorView) usualSlack() float32 {
	sum, n := float32(0), 0
	for _, row := range sampleOf(v.base.len(), judged) {
		if slack := v.base.slacks[row]; slack > 0 { // else it was dead when codes were made
			sum, n = sum+slack, n+1
		}
	}
	return sum / float32(max(1, n))
}

// adapt counts changes, and when they are as many as the vectors were that searches were calibrated with, it has this done
// again. Without a graph codes are made to fit again, too.
func (x *Index) adapt(v *vectorView, changes int) {
	x.changed += changes
	if v.dims < graphDims || x.changed < max(fitFrom, v.calibrated) || v.live < fitFrom {
		return
	}
	if !v.graph {
		x.refit(v)
	}
	x.recalibrate(v)
}

// refit recomputes the codes and the lists of a view without a graph, to fit its vectors. Earlier views keep theirs.
func (x *Index) refit(v *vectorView) {
	alive := v.alive()
	_ = v.fitTo(len(alive), func(row int, into []float32) error {
		copy(into, v.vector(alive[row]))
		return nil
	})
	for _, s := range []*segment{&v.base, &v.tail} {
		fresh := v.segmentOf(s.len())
		s.slacks, s.norms, s.coarse, s.high, s.low = fresh.slacks, fresh.norms, fresh.coarse, fresh.high, fresh.low
	}
	l := x.linkerOf(v)
	l.parallel(len(alive), func(w *vectorWalker, i int) {
		v.encodeRow(&w.query, v.vector(alive[i]), w.rotated)
		v.code(alive[i], &w.query)
	})
	l.judge()
	l.makeLists()
}

// clear resets an index without vectors to a new one. Earlier views keep their arrays.
func (x *Index) clear(v *vectorView) {
	x.names.Lock()
	defer x.names.Unlock()
	x.current.Store(&vectorView{shape: v.shape, version: v.version, entry: noSlot, efforts: leastEfforts})
	x.order, x.slots, x.file = nil, map[uint64]uint32{}, nil
	x.dead, x.added, x.spare, x.frozen = nil, 0, [maxLevel + 1][]uint32{}, false
}
