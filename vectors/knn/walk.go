package knn

import (
	"slices"

	"reconcile.dev/reconcile/vectors/kernel"
)

// walker is the scratch of one search or one insertion at a time: no search allocates after the first ones.
type walker struct {
	pool  pool
	hits  pool // of a filtered walk: what the filter lets pass
	seen  []uint64
	slots []uint32
	dots  []int32
	// salt puts equal distances in another order for each slot that links are chosen for: of a thousand equal vectors
	// each would else link to the same few.
	salt    uint32
	query   coded
	rotated []float32
	given   []float32 // to Assemble
	counts  []uint32
	kept    []uint32
	rest    []uint32
	answers []Hit
	bound   []bound
}

func newWalker(s shape) *walker {
	return &walker{query: s.row(), rotated: make([]float32, s.dims)}
}

// forget makes all slots unseen.
func (w *walker) forget(n int) {
	words := (n + 63) / 64
	if cap(w.seen) < words {
		w.seen = make([]uint64, words+words/4)
	}
	w.seen = w.seen[:words]
	clear(w.seen)
}

// see reports whether the slot is seen for the first time.
func (w *walker) see(slot uint32) bool {
	word, bit := &w.seen[slot>>6], uint64(1)<<(slot&63)
	if *word&bit != 0 {
		return false
	}
	*word |= bit
	return true
}

// measure sets dots to the inner products of w.slots with code.
func (w *walker) measure(v *view, code []int8) {
	w.dots = slices.Grow(w.dots[:0], len(w.slots))[:len(w.slots)]
	v.dots(code, w.slots, w.dots)
}

// descend goes greedily from the entry to the level, and returns the key of where it ends.
func (w *walker) descend(v *view, code []int8, level int) uint64 {
	best := keyOf(kernel.DotInt8(code, v.code(v.entry)), v.entry, w.salt)
	for at := v.top; at > level; at-- {
		for moved := true; moved; {
			moved = false
			w.slots = v.linksOf(w.slots[:0], slotOf(best, w.salt), at)
			w.measure(v, code)
			for i, dot := range w.dots {
				if key := keyOf(dot, w.slots[i], w.salt); key < best {
					best, moved = key, true
				}
			}
		}
	}
	return best
}

// walk leaves the ef best of a level in w.pool, beginning with the keys in starts. See pool for alike.
func (w *walker) walk(v *view, code []int8, level, ef, alike int, starts ...uint64) {
	w.forget(v.len())
	w.pool.reset(ef, alike)
	for _, key := range starts {
		if w.see(slotOf(key, w.salt)) {
			w.pool.add(key &^ done)
		}
	}
	p := &w.pool
	for next := 0; next < len(p.keys); {
		key := p.keys[next]
		if key&done != 0 {
			next++
			continue
		}
		p.keys[next] |= done
		next++
		if next < len(p.keys) { // it is the next one to be followed, unless a better one is found now
			kernel.Prefetch(v.links(slotOf(p.keys[next], w.salt), level))
		}
		w.expand(v, code, slotOf(key, w.salt), level)
		for i, dot := range w.dots {
			next = min(next, p.add(keyOf(dot, w.slots[i], w.salt)))
		}
	}
}

// expand measures the unseen neighbours of a slot.
func (w *walker) expand(v *view, code []int8, slot uint32, level int) {
	w.slots = v.linksOf(w.slots[:0], slot, level)
	fresh := w.slots[:0]
	for _, to := range w.slots {
		if w.see(to) {
			fresh = append(fresh, to)
		}
	}
	w.slots = fresh
	w.measure(v, code)
}
