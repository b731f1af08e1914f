package knn

import (
	"math"
	"slices"

	"reconcile.dev/reconcile/vectors/kernel"
)

// span is a run of rows of one segment that hold slots.
type span struct {
	s        *segment
	from, to int    // rows
	slot     uint32 // of row from
}

// spans calls do with all rows, ascending, but for those of holes.
func (v *view) spans(do func(span)) {
	if n := v.base.len(); n > 0 {
		do(span{&v.base, 0, n, 0})
	}
	n, from := v.base.len(), 0
	for i := len(v.holes) - 1; i >= 0; i-- {
		if hole := int(v.holes[i]) - n; hole > from {
			do(span{&v.tail, from, hole, uint32(n + from)})
			from = hole + 1
		} else {
			from = max(from, hole+1)
		}
	}
	if m := v.tail.len(); from < m {
		do(span{&v.tail, from, m, uint32(n + from)})
	}
}

// scanAll compares the query with all vectors: by their codes of 1 bit, the best of these by those of 8 bits, and the
// best of these exactly.
func (w *walker) scanAll(v *view, o SearchOptions) {
	limit, at := w.bitLimit(v, max(scanned, v.live/64, 8*o.K)), 0
	w.slots = w.slots[:0]
	v.spans(func(s span) {
		n := s.to - s.from
		for i, d := range w.dots[at : at+n] {
			if d <= limit {
				w.slots = append(w.slots, s.slot+uint32(i))
			}
		}
		at += n
	})
	w.rank(v, o)
}

// bitLimit sets w.dots to the distances of the query's code of 1 bit from those of all rows, and returns up to which
// distance there are about as many as wanted. It counts how often each occurs.
func (w *walker) bitLimit(v *view, want int) int32 {
	w.dots = w.dots[:0]
	v.spans(func(s span) {
		at, n := len(w.dots), s.to-s.from
		w.dots = slices.Grow(w.dots, n)[:at+n]
		kernel.ScanBits(w.query.bits, s.s.bits[s.from*v.words:s.to*v.words], v.words, w.dots[at:])
	})
	most := 64 * v.words // where a damaged file has bits beyond those of the dimensions
	w.counts = slices.Grow(w.counts[:0], most+1)[:most+1]
	clear(w.counts)
	for _, d := range w.dots {
		w.counts[d]++
	}
	sum := 0
	for limit, n := range w.counts {
		if sum += int(n); sum >= want {
			return int32(limit)
		}
	}
	return int32(most)
}

// scanSlots compares the query with w.slots.
func (w *walker) scanSlots(v *view, o SearchOptions) {
	w.slots = slices.DeleteFunc(w.slots, func(slot uint32) bool { return !v.has(slot) })
	w.rank(v, o)
}

// rank compares w.slots by their upper nibbles, the best of these by all of their codes, and the best of these exactly.
func (w *walker) rank(v *view, o SearchOptions) {
	w.measure(v, &w.query)
	room := v.weighed(o)
	w.pool.reset(room, room)
	for i, dot := range w.dots {
		if key := keyOf(dot, w.slots[i], 0); key < w.pool.worst() && o.passes(v, w.slots[i]) {
			w.pool.add(key)
		}
	}
	w.rerank(v, o, w.pool.keys)
}

// exact finds the K best for certain: a code says how similar a vector is at most, and vectors are compared in that order
// until none that is left can be better than the K found.
func (w *walker) exact(v *view, o SearchOptions) {
	w.bounds(v, o)
	heapify(w.bound)
	for len(w.bound) > 0 {
		top := w.bound[0]
		if len(w.answers) >= o.K && top.similarity < w.answers[o.K-1].Similarity ||
			o.MinSimilarity != 0 && top.similarity < o.MinSimilarity {
			break
		}
		w.bound = popBound(w.bound)
		w.answer(v, o, top.slot)
		w.settle(o)
	}
}

// settle moves the last answer to its place, and keeps K.
func (w *walker) settle(o SearchOptions) {
	a := w.answers
	for i := len(a) - 1; i > 0 && compareHits(a[i], a[i-1]) < 0; i-- {
		a[i], a[i-1] = a[i-1], a[i]
	}
	w.answers = a[:min(len(a), o.K)]
}

// bound is the highest possible similarity of a slot.
type bound struct {
	similarity float32
	slot       uint32
}

// bounds sets w.bound for all slots that pass and that can be among the K best.
//
// With q and x for the rotated unit vectors and q' and x' for what their codes stand for, the similarity q*x differs
// from q'*x' by q'*(x-x') + (q-q')*x, which is at most |q'| |x-x'| + |q-q'|.
func (w *walker) bounds(v *view, o SearchOptions) {
	w.bound = w.bound[:0]
	w.query.slack = v.distance(w.rotated, w.query.code)
	norm := float32(v.norm(w.query.code))
	v.spans(func(s span) {
		n := s.to - s.from
		w.dots = slices.Grow(w.dots[:0], n)[:n]
		kernel.ScanNibbles(w.query.code, s.s.high[s.from*v.stride:s.to*v.stride], v.stride, w.dots)
		w.lows = slices.Grow(w.lows[:0], n)[:n]
		kernel.ScanNibbles(w.query.code, s.s.low[s.from*v.stride:s.to*v.stride], v.stride, w.lows)
		join(w.dots, w.lows, w.query.sum)
		for i, dot := range w.dots {
			slot := s.slot + uint32(i)
			if o.passes(v, slot) {
				off := norm*s.s.slacks[s.from+i] + w.query.slack + rounding
				w.bound = append(w.bound, bound{v.similarity(dot) + off, slot})
			}
		}
	})
}

// norm is the length of what a code stands for.
func (c *coder) norm(code []int8) float64 {
	sum := int32(0)
	for _, x := range code {
		sum += int32(x) * int32(x)
	}
	return math.Sqrt(float64(sum)) / float64(c.scale)
}

// heapify makes a heap with the highest bound first.
func heapify(b []bound) {
	for i := len(b)/2 - 1; i >= 0; i-- {
		sift(b, i)
	}
}

// popBound removes the first of a heap.
func popBound(b []bound) []bound {
	b[0] = b[len(b)-1]
	b = b[:len(b)-1]
	if len(b) > 0 {
		sift(b, 0)
	}
	return b
}

func sift(b []bound, i int) {
	for {
		child := 2*i + 1
		if child >= len(b) {
			return
		}
		if child+1 < len(b) && b[child+1].similarity > b[child].similarity {
			child++
		}
		if b[i].similarity >= b[child].similarity {
			return
		}
		b[i], b[child] = b[child], b[i]
		i = child
	}
}
