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
func (v *vectorView) spans(do func(span)) {
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
// are those within reach keeps as many whatever these are. Of vectors that pass a filter many may be about as near.
func kept(v *vectorView, o SearchOptions) int {
	most := keptAll + o.Ef/keptOf
	switch {
	case o.Filter != nil:
		most = keptPassing
	case o.reach == 0:
		most = min(most, o.Ef)
	}
	return max(o.K, v.efforts.among, most)
}

// scanCodes compares the codes of all vectors as a walk does, and the best that it keeps exactly.
func (w *vectorWalker) scanCodes(v *vectorView, o SearchOptions) {
	w.best.reset(kept(v, o))
	v.spans(func(s span) {
		for s.from < s.to {
			next := s
			next.to = min(s.from+scannedAtOnce, s.to)
			w.sieveSpan(v, o, next)
			w.tighten(v, o, tightenAfter)
			s.slot += uint32(next.to - s.from)
			s.from = next.to
		}
	})
	w.rerank(v, o, w.candidates(v, o))
}

// scannedAtOnce is how many rows are compared before the limit of their distances is tightened.
const scannedAtOnce = 512

// offBy is how many standard deviations of what the lower nibbles change in the difference of two distances a candidate may be
// farther than the K best by the upper ones.
const offBy = 4

// candidates are the best that a scan keeps, without those that upper nibbles tell to be too far away.
func (w *vectorWalker) candidates(v *vectorView, o SearchOptions) []uint64 {
	w.best.kept()
	w.tighten(v, o, 0)
	return w.best.kept()
}

// tighten has w.best keep only what may be among the K best for what upper nibbles tell, once it has more keys than the last time by
// some.
func (w *vectorWalker) tighten(v *vectorView, o SearchOptions, some int) {
	s := &w.best
	if v.whole || len(s.keys) <= max(o.K, s.tight+some) {
		return
	}
	pick(s.keys, o.K)
	s.limit = min(s.limit, v.limitOf(&w.query, distOf(slices.Max(s.keys[:o.K]))))
	s.keys = s.keys[:o.K+split(s.keys[o.K:], s.limit)]
	s.tight = len(s.keys)
}

// limitOf is above the keys of slots that may be nearer than one at a distance, if both are told by upper nibbles.
func (v *vectorView) limitOf(q *coded, dist int32) uint64 {
	apart := math.Sqrt(max(0, v.apart(q, dist))) * float64(v.scale)
	ratio, lower := float64(q.ratio)/unitRatio, 16/math.Sqrt(12)
	limit := float64(dist) + offBy*2*math.Sqrt2*lower*apart*ratio
	if !(limit < math.MaxInt32-nearest) { // of a damaged file it may be no number
		return math.MaxUint64
	}
	return keyOf(int32(limit)+1, 0, 0)
}

// scanSpan sets w.dists to the inner products of a code with the codes of a span, or with what their upper nibbles tell.
func (w *vectorWalker) scanSpan(v *vectorView, q *coded, s span, whole bool) {
	_, shift, less := w.scanParts(v, q, s, whole)
	for i, dot := range w.dists {
		w.dists[i] = dot<<shift - less
	}
}

// scanParts sets w.dists so that these inner products are 2^shift times them, less a number, and returns the norms of the compared vectors.
func (w *vectorWalker) scanParts(v *vectorView, q *coded, s span, whole bool) (norms []int32, shift int, less int32) {
	n := s.to - s.from
	w.dists = slices.Grow(w.dists[:0], n)[:n]
	kernel.ScanNibbles(q.code, s.s.high[s.from*v.stride:s.to*v.stride], v.stride, w.dists)
	if !whole {
		return s.s.coarse[s.from:s.to][:n], 4, (128 - 8) * q.sum
	}
	w.lows = slices.Grow(w.lows[:0], n)[:n]
	kernel.ScanNibbles(q.code, s.s.low[s.from*v.stride:s.to*v.stride], v.stride, w.lows)
	for i, low := range w.lows {
		w.dists[i] = 16*w.dists[i] + low
	}
	return s.s.norms[s.from:s.to][:n], 0, 128 * q.sum
}

// scanSlots compares the query with those of w.slots that pass.
func (w *vectorWalker) scanSlots(v *vectorView, o SearchOptions) {
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
func (w *vectorWalker) keysOf(v *vectorView, whole bool) []uint64 {
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
