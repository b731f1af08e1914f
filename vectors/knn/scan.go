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

// spans calls do with all rows, ascending, except those of free slots.
func (v *view) spans(do func(span)) {
	if n := v.base.len(); n > 0 {
		do(span{&v.base, 0, n, 0})
	}
	n, from := v.base.len(), 0
	for i := len(v.free) - 1; i >= 0; i-- {
		if free := int(v.free[i]) - n; free > from {
			do(span{&v.tail, from, free, uint32(n + from)})
			from = free + 1
		} else {
			from = max(from, free+1)
		}
	}
	if m := v.tail.len(); from < m {
		do(span{&v.tail, from, m, uint32(n + from)})
	}
}

// kept is how many candidates a scan keeps at most. A search that is to look at most vectors needs not keep most; one whose lists
// are those within reach keeps as many whatever these are.
func kept(v *view, o SearchOptions) int {
	most := keptAll + o.Ef/keptOf
	if o.reach == 0 {
		most = min(most, o.Ef)
	}
	return max(o.K, v.efforts.among, most)
}

// scanCodes compares the codes of all vectors as a walk does, and the best that it keeps exactly.
func (w *walker) scanCodes(v *view, o SearchOptions) {
	w.best.reset(kept(v, o))
	v.spans(func(s span) { w.sieveSpan(v, o, s) })
	w.rerank(v, o, w.candidates(v, o))
}

// offBy is how many standard deviations of what the lower nibbles change in the difference of two distances a candidate may be
// farther than the K best by the upper ones.
const offBy = 4

// candidates are the best that a scan keeps, without those that upper nibbles tell to be too far away.
func (w *walker) candidates(v *view, o SearchOptions) []uint64 {
	keys := w.best.kept()
	if len(keys) <= o.K || v.whole {
		return keys
	}
	pick(keys, o.K)
	last := distOf(slices.Max(keys[:o.K]))
	apart := math.Sqrt(max(0, v.apart(&w.query, last))) * float64(v.scale)
	ratio, lower := float64(w.query.ratio)/unitRatio, 16/math.Sqrt(12)
	limit := float64(last) + offBy*2*math.Sqrt2*lower*apart*ratio
	if !(limit < math.MaxInt32-nearest) { // of a damaged file it may be no number
		return keys
	}
	return keys[:o.K+split(keys[o.K:], keyOf(int32(limit)+1, 0, 0))]
}

// sieveSpan offers w.best the slots of a span, and returns how many pass.
func (w *walker) sieveSpan(v *view, o SearchOptions, s span) (passed int) {
	norms := s.s.coarse[s.from:s.to]
	if v.whole {
		norms = s.s.norms[s.from:s.to]
	}
	w.scanSpan(v, &w.query, s, v.whole)
	norms, ratio := norms[:len(w.dists)], w.query.ratio
	if o.Filter == nil && v.born == nil {
		for i, dot := range w.dists {
			if dist := far(norms[i], dot, ratio); w.best.near(dist) {
				w.best.offer(keyOf(dist, s.slot+uint32(i), 0))
			}
		}
		return len(norms)
	}
	for i, dot := range w.dists {
		if slot := s.slot + uint32(i); o.passes(v, slot) {
			passed++
			w.best.offer(keyOf(far(norms[i], dot, ratio), slot, 0))
		}
	}
	return passed
}

// sieveSlots offers it w.slots.
func (w *walker) sieveSlots(v *view) {
	w.measure(v, &w.query)
	for i, dist := range w.dists {
		w.best.offer(keyOf(dist, w.slots[i], 0))
	}
}

// scanSpan sets w.dists to the inner products of a code with the codes of a span, or with what their upper nibbles tell.
func (w *walker) scanSpan(v *view, q *coded, s span, whole bool) {
	n := s.to - s.from
	w.dists = slices.Grow(w.dists[:0], n)[:n]
	kernel.ScanNibbles(q.code, s.s.high[s.from*v.stride:s.to*v.stride], v.stride, w.dists)
	if !whole {
		middle := (128 - 8) * q.sum
		for i, dot := range w.dists {
			w.dists[i] = 16*dot - middle
		}
		return
	}
	w.lows = slices.Grow(w.lows[:0], n)[:n]
	kernel.ScanNibbles(q.code, s.s.low[s.from*v.stride:s.to*v.stride], v.stride, w.lows)
	join(w.dists, w.lows, q.sum)
}

// scanSlots compares the query with those of w.slots that pass.
func (w *walker) scanSlots(v *view, o SearchOptions) {
	w.slots = slices.DeleteFunc(w.slots, func(slot uint32) bool { return !v.has(slot) })
	w.best.reset(kept(v, o))
	w.sieveSlots(v)
	w.rerank(v, o, w.candidates(v, o))
}

// bound is the highest possible similarity of a slot.
type bound struct {
	similarity float32
	slot       uint32
}

// keysOf are those of all vectors for the query.
func (w *walker) keysOf(v *view, whole bool) []uint64 {
	w.found = w.found[:0]
	v.spans(func(s span) {
		norms := s.s.coarse[s.from:s.to]
		if whole {
			norms = s.s.norms[s.from:s.to]
		}
		w.scanSpan(v, &w.query, s, whole)
		for i, dot := range w.dists {
			w.found = append(w.found, keyOf(far(norms[i], dot, w.query.ratio), s.slot+uint32(i), 0))
		}
	})
	return w.found
}
