package knn

import (
	"math"
	"math/bits"
	"slices"

	"reconcile.dev/reconcile/vectors/kernel"
)

// sieve keeps the lowest of the keys that it is given.
type sieve struct {
	keys  []uint64 // the lowest, and some others
	n     int
	limit uint64 // keys not below it are not among the lowest
	tight int    // how many were left when the limit was last tightened
}

// reset empties it. It keeps n keys from then on.
func (s *sieve) reset(n int) { s.keys, s.n, s.limit, s.tight = s.keys[:0], n, 1<<64-1, 0 }

// farthest is the distance beyond which no key is among the lowest.
func (s *sieve) farthest() int32 {
	if most := s.limit >> distShift; most < nearest+math.MaxInt32 {
		return int32(int64(most) - nearest)
	}
	return math.MaxInt32
}

// offer gives it a key.
func (s *sieve) offer(key uint64) {
	if key < s.limit {
		s.take(key)
	}
}

func (s *sieve) take(key uint64) {
	if s.keys = append(s.keys, key); len(s.keys) >= 2*s.n+64 {
		pick(s.keys, s.n)
		s.keys = s.keys[:s.n]
		s.limit = slices.Max(s.keys)
	}
}

// kept removes all but the lowest, and returns these in no order.
func (s *sieve) kept() []uint64 {
	pick(s.keys, s.n)
	s.keys = s.keys[:min(s.n, len(s.keys))]
	return s.keys
}

// lowest puts the n lowest keys first, in order, and returns them.
func lowest(keys []uint64, n int) []uint64 {
	if n = min(n, len(keys)); n <= few {
		return lowestFew(keys, n)
	}
	pick(keys, n)
	slices.Sort(keys[:n])
	return keys[:n]
}

// few is up to how many of the lowest keys are found by insertion.
const few = 12

// lowestFew does as lowest: few keys are below the lowest ones of those before them.
func lowestFew(keys []uint64, n int) []uint64 {
	first := keys[:n]
	slices.Sort(first)
	for k := n; k < len(keys) && n > 0; k++ {
		key := keys[k]
		if key >= first[n-1] {
			continue
		}
		keys[k] = first[n-1]
		i := n - 1
		for ; i > 0 && first[i-1] > key; i-- {
			first[i] = first[i-1]
		}
		first[i] = key
	}
	return first
}

// pick puts the n lowest first.
func pick(keys []uint64, n int) {
	for n > 0 && n < len(keys) {
		pivot := middleOf(keys[0], keys[len(keys)/2], keys[len(keys)-1])
		below := split(keys, pivot)
		if below == 0 { // else those that equal the pivot might never be left
			below = split(keys, pivot+1)
			n = max(0, n-below)
			keys = keys[below:]
			continue
		}
		if n < below {
			keys = keys[:below]
		} else {
			n -= below
			keys = keys[below:]
		}
	}
}

// split puts the keys below a limit first, and returns how many these are. It does not branch on them, which a processor could
// not foresee.
func split(keys []uint64, limit uint64) int {
	n := 0
	for i, key := range keys {
		keys[i], keys[n] = keys[n], key
		_, below := bits.Sub64(key, limit, 0)
		n += int(below)
	}
	return n
}

// middleOf is the one in the middle of three.
func middleOf(a, b, c uint64) uint64 { return max(min(a, b), min(max(a, b), c)) }

// heapify makes a heap with the highest bound first.
func heapify(b []bound) {
	for i := len(b)/2 - 1; i >= 0; i-- {
		sift(b, i)
	}
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

// sieveSpan offers w.best the slots of a span, and returns how many pass.
func (w *vectorWalker) sieveSpan(v *vectorView, o SearchOptions, s span) (passed int) {
	norms, shift, less := w.scanParts(v, &w.query, s, v.whole)
	n := len(w.dists)
	w.below = slices.Grow(w.below[:0], n)[:n]
	below := w.below[:kernel.Sift(w.dists, norms, w.query.ratio, shift+1, 2*less, w.best.farthest(), w.below)]
	if o.Filter == nil && v.born == nil {
		for _, i := range below {
			w.best.offer(keyOf(w.dists[i], s.slot+i, 0))
		}
		return n
	}
	for _, i := range below {
		if slot := s.slot + i; o.passes(v, slot) {
			w.best.offer(keyOf(w.dists[i], slot, 0))
		}
	}
	for i := range uint32(n) {
		if o.passes(v, s.slot+i) {
			passed++
		}
	}
	return passed
}

// sieveSlots offers it w.slots.
func (w *vectorWalker) sieveSlots(v *vectorView) {
	w.measure(v, &w.query)
	for i, dist := range w.dists {
		w.best.offer(keyOf(dist, w.slots[i], 0))
	}
}
