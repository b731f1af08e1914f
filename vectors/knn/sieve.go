package knn

import (
	"math/bits"
	"slices"
)

// sieve keeps the lowest of the keys that it is given.
type sieve struct {
	keys  []uint64 // the lowest, and some others
	n     int
	limit uint64 // keys not below it are not among the lowest
}

// reset empties it. It keeps n keys from then on.
func (s *sieve) reset(n int) { s.keys, s.n, s.limit = s.keys[:0], n, 1<<64-1 }

// near reports whether a key of this distance may be among the lowest.
func (s *sieve) near(dist int32) bool { return uint32(nearest+dist) <= uint32(s.limit>>distShift) }

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

// kept are the lowest, in no order.
func (s *sieve) kept() []uint64 {
	pick(s.keys, s.n)
	return s.keys[:min(s.n, len(s.keys))]
}

// lowest puts the n lowest keys first, in order, and returns them.
func lowest(keys []uint64, n int) []uint64 {
	if n = min(n, len(keys)); n <= 4 {
		for i := range n {
			for k := i + 1; k < len(keys); k++ {
				keys[i], keys[k] = min(keys[i], keys[k]), max(keys[i], keys[k])
			}
		}
		return keys[:n]
	}
	pick(keys, n)
	slices.Sort(keys[:n])
	return keys[:n]
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
