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

// scanAll compares the query with all vectors: by their codes of 1 bit, the best of these by those of 8 bits, and the best of
// these exactly. Few codes are compared without those of 1 bit.
func (w *walker) scanAll(v *view, o SearchOptions) {
	want := max(scanned, v.live/64, 4*o.Ef)
	if 4*want >= v.live || v.live*v.stride <= cached {
		w.scanCodes(v, o)
		return
	}
	limit, at := w.bitLimit(v, o.K, want), 0
	w.slots = w.slots[:0]
	v.spans(func(s span) {
		n := s.to - s.from
		for i, d := range w.dists[at : at+n] {
			if d <= limit {
				w.slots = append(w.slots, s.slot+uint32(i))
			}
		}
		at += n
	})
	w.rank(v, o)
}

// scanCodes compares the codes of all vectors as a walk does, and the best that it keeps exactly.
func (w *walker) scanCodes(v *view, o SearchOptions) {
	keys := slices.DeleteFunc(w.keysOf(v, v.whole), func(key uint64) bool { return !o.passes(v, slotOf(key, 0)) })
	w.rerank(v, o, lowest(keys, o.Ef))
}

// scanSpan sets w.dists to the inner products of the query with the codes of a span, or with what their upper nibbles tell.
func (w *walker) scanSpan(v *view, s span, whole bool) {
	n := s.to - s.from
	w.dists = slices.Grow(w.dists[:0], n)[:n]
	kernel.ScanNibbles(w.query.code, s.s.high[s.from*v.stride:s.to*v.stride], v.stride, w.dists)
	if !whole {
		middle := (128 - 8) * w.query.sum
		for i, dot := range w.dists {
			w.dists[i] = 16*dot - middle
		}
		return
	}
	w.lows = slices.Grow(w.lows[:0], n)[:n]
	kernel.ScanNibbles(w.query.code, s.s.low[s.from*v.stride:s.to*v.stride], v.stride, w.lows)
	join(w.dists, w.lows, w.query.sum)
}

// lowest puts the n lowest keys first, in order, and returns them.
func lowest(keys []uint64, n int) []uint64 {
	part := keys
	for rest := n; rest > 0 && rest < len(part); {
		pivot := middleOf(part[0], part[len(part)/2], part[len(part)-1])
		below, above := 0, len(part)-1
		for below <= above {
			switch {
			case part[below] < pivot:
				below++
			case part[above] > pivot:
				above--
			default:
				part[below], part[above] = part[above], part[below]
				below++
				above--
			}
		}
		switch {
		case rest <= above+1:
			part = part[:above+1]
		case rest >= below:
			part, rest = part[below:], rest-below
		default:
			rest = 0
		}
	}
	keys = keys[:min(n, len(keys))]
	slices.Sort(keys)
	return keys
}

// middleOf is the one in the middle of three.
func middleOf(a, b, c uint64) uint64 { return max(min(a, b), min(max(a, b), c)) }

// bitLimit sets w.dists to the distances of the query's code of 1 bit from those of all rows, and returns up to which
// distance there are about as many as wanted, or those that may be among the k nearest, if these are more: the distances of
// two vectors that are equally near differ by chance. It counts how often each occurs.
func (w *walker) bitLimit(v *view, k, want int) int32 {
	w.dists = w.dists[:0]
	v.spans(func(s span) {
		at, n := len(w.dists), s.to-s.from
		w.dists = slices.Grow(w.dists, n)[:at+n]
		kernel.ScanBits(w.query.bits, s.s.bits[s.from*v.words:s.to*v.words], v.words, w.dists[at:])
	})
	most := 64 * v.words // where a damaged file has bits beyond those of the dimensions
	w.counts = slices.Grow(w.counts[:0], most+1)[:most+1]
	clear(w.counts)
	for _, d := range w.dists {
		w.counts[d]++
	}
	near := w.countsTo(k)
	share := min(1, float64(near)/float64(v.dims))
	chance := 2 * math.Sqrt(2*float64(v.dims)*share*(1-share))
	return int32(min(most, max(w.countsTo(want), near+int(chance))))
}

// countsTo is up to which distance w.counts counts as many as wanted.
func (w *walker) countsTo(want int) int {
	sum := 0
	for limit, n := range w.counts {
		if sum += int(n); sum >= want {
			return limit
		}
	}
	return len(w.counts) - 1
}

// scanSlots compares the query with w.slots.
func (w *walker) scanSlots(v *view, o SearchOptions) {
	w.slots = slices.DeleteFunc(w.slots, func(slot uint32) bool { return !v.has(slot) })
	w.rank(v, o)
}

// rank compares w.slots as a walk does, and the best that it keeps exactly.
func (w *walker) rank(v *view, o SearchOptions) {
	w.measure(v, &w.query)
	w.found = w.found[:0]
	for i, dist := range w.dists {
		if o.passes(v, w.slots[i]) {
			w.found = append(w.found, keyOf(dist, w.slots[i], 0))
		}
	}
	w.rerank(v, o, lowest(w.found, o.Ef))
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
		w.settle(v, o)
	}
}

// settle moves the last answer to its place, and keeps K.
func (w *walker) settle(v *view, o SearchOptions) {
	a := w.answers
	for i := len(a) - 1; i > 0 && before(v, a[i], a[i-1]); i-- {
		a[i], a[i-1] = a[i-1], a[i]
	}
	w.answers = a[:min(len(a), o.K)]
}

// before reports whether a hit comes before another: it is more similar, or has the lower ID. Hits have no IDs yet.
func before(v *view, a, b Hit) bool {
	return a.Similarity > b.Similarity || a.Similarity == b.Similarity && v.id(a.Slot) < v.id(b.Slot)
}

// bound is the highest possible similarity of a slot.
type bound struct {
	similarity float32
	slot       uint32
}

// bounds sets w.bound for all slots that pass. Two unit vectors whose distance is d have a similarity of 1-d*d/2, and d is
// at least the distance of what their codes stand for less those of the vectors from their codes.
func (w *walker) bounds(v *view, o SearchOptions) {
	w.bound = w.bound[:0]
	slack := v.distance(w.rotated, &w.query)
	v.spans(func(s span) {
		w.scanSpan(v, s, true)
		for i, dot := range w.dists {
			if slot := s.slot + uint32(i); o.passes(v, slot) {
				apart := math.Sqrt(max(0, v.apart(&w.query, far(s.s.norms[s.from+i], dot, w.query.ratio))))
				least := max(0, float32(apart)-slack-s.s.slacks[s.from+i])
				w.bound = append(w.bound, bound{1 - least*least/2 + rounding, slot})
			}
		}
	})
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
