package knn

import (
	"math"
	"slices"
	"sync/atomic"

	"reconcile.dev/reconcile/vectors/kernel"
)

// vectorWalker is the scratch of one search or one insertion at a time: no search allocates after the first ones.
type vectorWalker struct {
	pool   pool
	best   sieve    // candidates by what a scan compares
	ranked []uint64 // candidates by their whole codes
	starts []uint64
	met    []uint64   // all that a walk compares which keeps more than it follows
	ahead  [][]uint32 // links that are followed next
	seen   []uint64
	slots  []uint32
	dists  []int32
	lows   []int32  // the part of the lower nibbles in dists
	below  []uint32 // numbers of dists
	found  []uint64
	// vector, unless nil, reads exact vectors; similarities are the same on every machine then. See calibrate.
	vector func(slot uint32) []float32
	// hidden is a slot that a walk acts as if it were not there; noSlot: none.
	hidden uint32
	// wanted is a key that ends a walk once it is the best one met; 0: none.
	wanted uint64
	way    []uint32 // where descend left each level
	// salt puts equal distances in another order for each slot that links are chosen for: of a thousand equal vectors
	// each would else link to the same few.
	salt    uint32
	query   coded
	linked  coded // only the code, of the slot that is linked
	offered coded // only the code, of a slot that it may be linked to
	rotated []float32
	given   []float32 // to Assemble
	peers   []peer    // of the slot that is linked
	kept    []uint32
	rest    []uint32
	answers []Hit
	bound   []bound
}

func newWalker(s shape) *vectorWalker {
	return &vectorWalker{hidden: noSlot, query: s.row(), rotated: make([]float32, s.dims),
		linked: coded{code: make([]int8, 2*s.stride)}, offered: coded{code: make([]int8, 2*s.stride)}}
}

// forget makes all slots unseen.
func (w *vectorWalker) forget(n int) {
	words := (n + 63) / 64
	if cap(w.seen) < words {
		w.seen = make([]uint64, words+words/4)
	}
	w.seen = w.seen[:words]
	clear(w.seen)
	if int(w.hidden) < n {
		w.see(w.hidden)
	}
}

// see reports whether the slot is seen for the first time.
func (w *vectorWalker) see(slot uint32) bool {
	word, bit := &w.seen[slot>>6], uint64(1)<<(slot&63)
	if *word&bit != 0 {
		return false
	}
	*word |= bit
	return true
}

// measure sets w.dists to the distances of w.slots from a code, with the precision that ordering the slots needs: see far.
// A walk reads the upper nibbles only, with the middle of the range of the lower ones, unless these are needed to keep the
// order.
func (w *vectorWalker) measure(v *vectorView, q *coded) {
	if v.whole {
		w.weigh(v, q)
		return
	}
	w.dists = slices.Grow(w.dists[:0], len(w.slots))[:len(w.slots)]
	kernel.PrefetchRows(v.base.coarse, 1, w.slots)
	v.dots(q.code, highPlane, w.slots, w.dists)
	middle := (128 - 8) * q.sum
	for i, dot := range w.dists {
		w.dists[i] = far(normAt(v.base.coarse, v.tail.coarse, w.slots[i]), 16*dot-middle, q.ratio)
	}
}

// weigh does so by whole codes.
func (w *vectorWalker) weigh(v *vectorView, q *coded) {
	n := len(w.slots)
	w.dists, w.lows = slices.Grow(w.dists[:0], n)[:n], slices.Grow(w.lows[:0], n)[:n]
	kernel.PrefetchRows(v.base.low, v.stride, w.slots)
	kernel.PrefetchRows(v.base.norms, 1, w.slots)
	v.dots(q.code, highPlane, w.slots, w.dists)
	v.dots(q.code, lowPlane, w.slots, w.lows) // has nothing left to put in order
	join(w.dists, w.lows, q.sum)
	for i, dot := range w.dists {
		w.dists[i] = far(normAt(v.base.norms, v.tail.norms, w.slots[i]), dot, q.ratio)
	}
}

// one returns the distance of one slot, as measure does.
func (w *vectorWalker) one(v *vectorView, q *coded, slot uint32) int32 {
	w.slots = append(w.slots[:0], slot)
	w.measure(v, q)
	return w.dists[0]
}

// offer sets w.offered to what walks know of a slot.
func (w *vectorWalker) offer(v *vectorView, slot uint32) *coded {
	q := &w.offered
	if q.ratio = unitRatio; v.whole {
		kernel.Join(q.code, v.high(slot), v.low(slot))
		q.norm = v.norm(slot)
	} else {
		kernel.Join(q.code, v.high(slot), nil) // the lower ones are not in the cache, and change little
		clear(q.code[v.dims:])
		s, row := v.at(slot)
		q.norm = s.coarse[row]
	}
	q.sum, _ = kernel.CodeSums(q.code)
	return q
}

// descend goes greedily from the entry to the level, and returns the key of where it ends. w.way tells how.
func (w *vectorWalker) descend(v *vectorView, q *coded, level int) uint64 {
	best := keyOf(w.one(v, q, v.entry), v.entry, w.salt)
	w.way = w.way[:0]
	for at := v.top; at > level; at-- {
		for moved := true; moved; {
			moved = false
			w.slots = v.linksOf(w.slots[:0], slotOf(best, w.salt), at)
			w.measure(v, q)
			for i, dist := range w.dists {
				if key := keyOf(dist, w.slots[i], w.salt); key < best && w.slots[i] != w.hidden {
					best, moved = key, true
				}
			}
		}
		w.way = append(w.way, slotOf(best, w.salt))
	}
	return best
}

// A search keeps above the lowest level one of beamShare candidates that it follows there, but leastBeam to mostBeam.
const beamShare, leastBeam, mostBeam = 16, 2, 16

// walk leaves the best of a level in w.pool, beginning with the keys in starts: it follows the ef best, and keeps as many, or
// more. See pool for alike.
func (w *vectorWalker) walk(v *vectorView, q *coded, level, ef, keep, alike int, starts ...uint64) {
	w.forget(v.len())
	w.pool.reset(ef, alike)
	w.met = w.met[:0]
	for _, key := range starts {
		if w.see(slotOf(key, w.salt)) {
			w.pool.add(key &^ done)
			w.met = append(w.met, key&^done)
			kernel.Prefetch(v.links(slotOf(key, w.salt), level))
		}
	}
	p := &w.pool
	for next := 0; next < min(ef, len(p.keys)) && p.keys[0]&^done != w.wanted; {
		next = w.follow(v, level, next, ef)
		w.measure(v, q)
		w.sift(v, level, p.worst(), keep > ef)
		for _, key := range w.found {
			next = min(next, p.add(key))
		}
	}
	if keep > ef {
		p.keys = append(p.keys[:0], lowest(w.met, keep)...)
	}
}

// abreast is the number of candidates that a walk follows at once. With more, the memory accesses of their neighbours
// overlap; but the later ones might have been excluded if the neighbours of the first had been compared before.
const abreast = 4

// follow sets w.slots to the unseen neighbours of the best candidates from next on that were not followed yet and are among the
// ef best, and returns where the others begin. The links of those that come after them are fetched: they are followed then, unless better ones are
// found now.
func (w *vectorWalker) follow(v *vectorView, level, next, ef int) int {
	p := &w.pool
	w.slots = w.slots[:0]
	last := min(ef, len(p.keys))
	w.ahead = w.ahead[:0]
	for ; len(w.ahead) < abreast && next < last; next++ {
		if key := p.keys[next]; key&done == 0 {
			p.keys[next] |= done
			links := v.links(slotOf(key, w.salt), level)
			kernel.Prefetch(links)
			w.ahead = append(w.ahead, links)
		}
	}
	for _, links := range w.ahead {
		w.enter(v, links)
	}
	for at, n := next, 0; n < abreast && at < last; at++ {
		if key := p.keys[at]; key&done == 0 {
			kernel.Prefetch(v.links(slotOf(key, w.salt), level))
			n++
		}
	}
	return next
}

// sift leaves in w.found the keys of w.slots, with their w.dists, that are below a limit, and adds all to w.met if it is to. The
// best of them may be followed next.
func (w *vectorWalker) sift(v *vectorView, level int, limit uint64, all bool) {
	w.found = slices.Grow(w.found[:0], len(w.slots))[:len(w.slots)]
	n, best := 0, uint64(math.MaxUint64)
	for i, dist := range w.dists {
		key := keyOf(dist, w.slots[i], w.salt)
		if all {
			w.met = append(w.met, key)
		}
		w.found[n] = key
		if key < limit {
			n++
			best = min(best, key)
		}
	}
	w.found = w.found[:n]
	if n > 0 {
		kernel.Prefetch(v.links(slotOf(best, w.salt), level))
	}
}

// enter adds to w.slots the unseen neighbours that a block of links leads to.
func (w *vectorWalker) enter(v *vectorView, block []uint32) {
	n, all := len(w.slots), uint32(v.len())
	w.slots = slices.Grow(w.slots, len(block))[:n+len(block)]
	for i := range block {
		to := atomic.LoadUint32(&block[i])
		if to == noSlot {
			break
		}
		if to < all && w.see(to) {
			w.slots[n] = to
			n++
		}
	}
	w.slots = w.slots[:n]
}

// walkFiltered walks until it has met as many candidates that pass as a search without a filter meets of all, if they are spread evenly.
// Where that is most of the vectors, or those that pass are elsewhere, it compares the codes of all that pass.
func (w *vectorWalker) walkFiltered(v *vectorView, o SearchOptions) {
	n, passing := v.len(), o.Filter.Len()
	ef := o.Ef * n / passing
	if ef <= min(n, v.calibrated)/dense {
		w.walk(v, &w.query, 0, ef, v.efforts.among*n/passing, alike(o), w.approach(v, &w.query, ef)...)
		met := 0
		for _, key := range w.pool.keys {
			if o.passes(v, slotOf(key, 0)) {
				met++
			}
		}
		if met >= o.Ef*3/4 {
			w.rerank(v, o, w.pool.keys)
			return
		}
	}
	if passing > n/sparse {
		w.scanCodes(v, o)
		return
	}
	w.slots = o.Filter.appendTo(w.slots[:0], n)
	w.scanSlots(v, o)
}

// dotsOf sets dots to the inner products of the query with the vectors of some slots. Equal vectors have equal ones.
func (w *vectorWalker) dotsOf(v *vectorView, slots []uint32, dots []float32) {
	switch {
	case w.vector != nil:
		for i, slot := range slots {
			dots[i] = float32(kernel.StableDot(w.query.unit, w.vector(slot)))
		}
	case int(slices.Max(slots)) < v.base.len():
		kernel.DotRows(w.query.unit, v.base.vectors, slots, dots)
	default:
		for i, slot := range slots {
			s, row := v.at(slot)
			at := [1]uint32{uint32(row)}
			kernel.DotRows(w.query.unit, s.vectors, at[:], dots[i:i+1])
		}
	}
}
