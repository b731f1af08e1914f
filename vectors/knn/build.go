package knn

import (
	"context"
	"slices"
)

// Build builds an index of items, in any order: it encodes their vectors, links the near ones, and calibrates the
// search. The bytes do not depend on the number of threads or the processor. progress, if not nil, is called from time
// to time with the number of vectors that are done.
//
// The error names a refused item and the reason: errDims, errNotFinite, ErrZero, ErrTwice, errFull; or it is that of
// the context, which ends the work within moments.
func Build(ctx context.Context, o Options, items []Item, progress func(done, total int)) (*Index, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if len(items) > maxVectors {
		return nil, errFull
	}
	v := &vectorView{shape: shapeOf(o), entry: noSlot, live: len(items)}
	sorted, err := v.sorted(items)
	if err != nil {
		return nil, err
	}
	if err := v.fitTo(len(items), func(row int, into []float32) error {
		copy(into, items[sorted[row]].Vector)
		return nil
	}); err != nil {
		return nil, err
	}
	x := newIndex(o, v)
	v.base = v.segmentOf(len(items))
	l := x.linkerOf(v)
	l.stop = ctx.Done()
	l.parallel(len(items), func(w *vectorWalker, i int) {
		item := items[sorted[i]]
		v.coder.encodeRow(&w.query, item.Vector, w.rotated)
		v.fill(uint32(i), item.ID, &w.query)
	})
	rows, err := x.finish(ctx, v, progress)
	if err != nil {
		return nil, err
	}
	v.base.vectors = make([]float32, len(items)*v.dims)
	l.parallel(len(items), func(w *vectorWalker, slot int) {
		unit(v.base.vectors[slot*v.dims:(slot+1)*v.dims], items[sorted[rows[slot]]].Vector)
	})
	if err := x.linkerOf(v).calibrate(v.exact); err != nil {
		return nil, err
	}
	x.linker.stop = nil
	return x, context.Cause(ctx)
}

// finish makes the graph or the lists of a view whose base is filled, if it is large enough, and the order of the IDs. It
// returns which row each slot was filled as. The error is that of the context.
func (x *Index) finish(ctx context.Context, v *vectorView, progress func(done, total int)) (rows []uint32, err error) {
	n := v.base.len()
	x.linkerOf(v).judge()
	if n >= x.options.GraphFrom && v.dims >= graphDims {
		rows = x.buildGraph(v, progress)
	} else {
		rows = x.buildLists(v)
	}
	if ctx.Err() != nil { // the result is incomplete
		return nil, context.Cause(ctx)
	}
	x.order = v.base.byID()
	if progress != nil {
		progress(n, n)
	}
	return rows, nil
}

// buildGraph links all slots of the base, which are in the order of their IDs, and reorders them as a walk meets them,
// so that near vectors are near in memory. It returns that order; nil if it was stopped.
func (x *Index) buildGraph(v *vectorView, progress func(done, total int)) []uint32 {
	v.makeBlocks()
	for slot := range uint32(v.len()) {
		v.base.upperStart[slot] = x.allocUpper(v, v.levelOf(v.base.ids[slot]))
	}
	slots := make([]uint32, v.len())
	for i := range slots {
		slots[i] = uint32(i)
	}
	l := x.linkerOf(v)
	l.addAll(slots, func(linked int) {
		if progress != nil && linked < len(slots) {
			progress(linked, len(slots))
		}
	})
	if l.stopped() {
		return nil
	}
	l.connect()
	l.findAll()
	order := v.met()
	v.reorder(order)
	return order
}

// buildLists makes the lists of the base, if it is large enough, and makes each list contiguous. It returns the new
// order.
func (x *Index) buildLists(v *vectorView) []uint32 {
	x.linkerOf(v).makeLists()
	if !v.inLists() {
		return v.alive()
	}
	order := slices.Concat(v.lists.members...)
	if len(order) != v.len() {
		return nil // stopped
	}
	v.reorder(order)
	at := uint32(0)
	for _, members := range v.lists.members {
		for i := range members {
			members[i] = at
			at++
		}
	}
	return order
}

// met returns all slots in the order in which following the links from the entry meets them, breadth first.
func (v *vectorView) met() []uint32 {
	order := make([]uint32, 0, v.len())
	seen := make([]bool, v.len())
	meet := func(slot uint32) {
		if !seen[slot] {
			seen[slot] = true
			order = append(order, slot)
		}
	}
	meet(v.entry)
	next, rest := 0, uint32(0)
	var links []uint32
	for len(order) < v.len() {
		if next == len(order) { // only where connect found no way
			meet(rest)
			rest++
			continue
		}
		links = v.linksOf(links[:0], order[next], 0)
		next++
		for _, to := range links {
			meet(to)
		}
	}
	return order
}

// reorder moves row order[i] of the base to i.
func (v *vectorView) reorder(order []uint32) {
	moved := make([]uint32, len(order)) // where a slot goes
	for i, slot := range order {
		moved[slot] = uint32(i)
	}
	s := &v.base
	arrange(s.ids, 1, order)
	arrange(s.sizes, 1, order)
	arrange(s.slacks, 1, order)
	arrange(s.norms, 1, order)
	arrange(s.coarse, 1, order)
	arrange(s.upperStart, 1, order)
	arrange(s.high, v.stride, order)
	arrange(s.low, v.stride, order)
	arrange(s.links, v.cap0(), order)
	arrange(s.vectors, v.dims, order)
	rename(s.links, moved)
	rename(v.upper, moved)
	if v.hasEntry() {
		v.entry = moved[v.entry]
	}
}

// arrange moves row order[i] to i, in place; an array without rows stays so.
func arrange[T any](rows []T, width int, order []uint32) {
	if len(rows) == 0 {
		return
	}
	row := func(i uint32) []T { return rows[int(i)*width : (int(i)+1)*width] }
	placed := make([]bool, len(order))
	first := make([]T, width)
	for start := range uint32(len(order)) {
		if placed[start] {
			continue
		}
		copy(first, row(start))
		at := start
		for ; order[at] != start; at = order[at] {
			copy(row(at), row(order[at]))
			placed[at] = true
		}
		copy(row(at), first)
		placed[at] = true
	}
}
