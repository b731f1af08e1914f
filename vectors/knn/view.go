package knn

import (
	"math/bits"
	"slices"
	"sync/atomic"

	"reconcile.dev/reconcile/vectors/kernel"
)

// shape is what the sizes of all arrays follow from, and what codes mean.
type shape struct {
	*coder
	m int
}

func shapeOf(o Options) shape { return shape{newCoder(o.Dims), o.M} }

// cap0 is the number of links of a slot at the lowest level.
func (s shape) cap0() int { return 2 * s.m }

// segment is a run of slots: arrays of rows, one for each slot. Unused links are noSlot.
type segment struct {
	ids        []uint64
	sizes      []float32
	slacks     []float32
	norms      []int32  // sums of the squares of the codes
	coarse     []int32  // of what their upper nibbles tell
	upperStart []uint32 // starts of the links of the levels above the lowest in view.upper; noSlot for none
	high       []byte   // upper nibbles of the codes
	low        []byte   // lower nibbles
	links      []uint32 // cap0 a slot; empty without a graph
	vectors    []float32
}

func (s *segment) len() int { return len(s.ids) }

// vectorView is a state of the index. Readers take the current one and keep it. Links and lives, which a writer changes in its
// arrays meanwhile, are read and written atomically. Everything else of a slot is written before the slot is published,
// and again only when no reader is left whose view includes it.
type vectorView struct {
	shape
	// base never grows, and may be mapped from a file; tail has the slots added later.
	base, tail segment
	upper      []uint32 // m links a level, from level 1 on
	// free are the unused slots of the tail, descending. Their rows may be written at any time.
	free []uint32
	// version counts the changes. A slot belongs to the views from the version on that it was born in, and not from that on
	// that it died in. Without any change born and died are nil.
	version    uint64
	born, died []uint64
	live       int
	// efforts are the result of the calibration, with that many vectors.
	efforts    efforts
	calibrated int
	// lists has the slots of an index without a graph; it is empty if they are few.
	lists lists
	// graph says that there are links. entry is where walks begin, at level top; noSlot if nothing is linked.
	graph bool
	entry uint32
	top   int
}

func (v *vectorView) len() int       { return v.base.len() + v.tail.len() }
func (v *vectorView) hasEntry() bool { return v.entry != noSlot }

// at finds the segment of a slot and its row there.
func (v *vectorView) at(slot uint32) (*segment, int) {
	if n := v.base.len(); int(slot) >= n {
		return &v.tail, int(slot) - n
	}
	return &v.base, int(slot)
}

func (v *vectorView) id(slot uint32) uint64 {
	s, row := v.at(slot)
	return s.ids[row]
}

func (v *vectorView) high(slot uint32) []byte {
	s, row := v.at(slot)
	return s.high[row*v.stride : (row+1)*v.stride]
}

func (v *vectorView) low(slot uint32) []byte {
	s, row := v.at(slot)
	return s.low[row*v.stride : (row+1)*v.stride]
}

func (v *vectorView) vector(slot uint32) []float32 {
	s, row := v.at(slot)
	return s.vectors[row*v.dims : (row+1)*v.dims]
}

// has reports whether a slot belongs to this view.
func (v *vectorView) has(slot uint32) bool {
	return v.born == nil || atomic.LoadUint64(&v.born[slot]) <= v.version && v.version < atomic.LoadUint64(&v.died[slot])
}

// links returns the block of links of a slot at a level. Read it with linksOf.
func (v *vectorView) links(slot uint32, level int) []uint32 {
	s, row := v.at(slot)
	if level == 0 {
		n := v.cap0()
		return s.links[row*n : (row+1)*n]
	}
	from := uint64(s.upperStart[row]) + uint64((level-1)*v.m)
	if to := from + uint64(v.m); to <= uint64(len(v.upper)) {
		return v.upper[from:to]
	}
	return nil
}

// upperLinksOf returns all links of a row above the lowest level; nil if it has none.
func (v *vectorView) upperLinksOf(s *segment, row int) []uint32 {
	from := uint64(s.upperStart[row])
	to := from + uint64(v.levelOf(s.ids[row])*v.m)
	if from == noSlot || to == from || to > uint64(len(v.upper)) {
		return nil
	}
	return v.upper[from:to]
}

// linksOf appends the links of a slot at a level to dst, without those that this view does not have.
func (v *vectorView) linksOf(dst []uint32, slot uint32, level int) []uint32 {
	block := v.links(slot, level)
	n := uint32(v.len())
	for i := range block {
		to := atomic.LoadUint32(&block[i])
		if to == noSlot {
			break
		}
		if to < n {
			dst = append(dst, to)
		}
	}
	return dst
}

// setLinks replaces the links of a slot at a level.
func (v *vectorView) setLinks(slot uint32, level int, links []uint32) {
	block := v.links(slot, level)
	for i := range block {
		to := uint32(noSlot)
		if i < len(links) {
			to = links[i]
		}
		if block[i] != to { // only the one writer gets here: its own reads need not be atomic
			atomic.StoreUint32(&block[i], to)
		}
	}
}

// norm is the sum of the squares of the code of a slot.
func (v *vectorView) norm(slot uint32) int32 {
	s, row := v.at(slot)
	return s.norms[row]
}

// plane is one of the two that a segment has.
type plane func(*segment) []byte

// dots sets out[i] to the inner product of a code with the nibbles of slots[i]. It may change the order of slots.
func (v *vectorView) dots(code []int8, of plane, slots []uint32, out []int32) {
	n := uint32(v.base.len())
	if v.tail.len() == 0 {
		kernel.DotsNibbles(code, of(&v.base), v.stride, slots, out)
		return
	}
	split := 0
	for i, slot := range slots {
		if slot < n {
			slots[i], slots[split] = slots[split], slot
			split++
		}
	}
	kernel.DotsNibbles(code, of(&v.base), v.stride, slots[:split], out[:split])
	for i := range slots[split:] {
		slots[split+i] -= n
	}
	kernel.DotsNibbles(code, of(&v.tail), v.stride, slots[split:], out[split:])
	for i := range slots[split:] {
		slots[split+i] += n
	}
}

// levelOf is the level of an ID: l or more with a probability of m^-l.
func (s shape) levelOf(id uint64) int {
	level := 0
	for x := mix(id ^ rotationSeed); ; level++ {
		high, low := bits.Mul64(x, uint64(s.m)) // x is a fraction of 2^64: the next level if x*m < 1
		if high != 0 || level == maxLevel {
			return level
		}
		x = low
	}
}

// maxLevel is more than any level that occurs: 2^-32 of all IDs would be on it with m = 2.
const maxLevel = 32

// segmentOf has n rows, without exact vectors.
func (s shape) segmentOf(n int) segment {
	return segment{
		ids: make([]uint64, n), sizes: make([]float32, n), slacks: make([]float32, n),
		norms: make([]int32, n), coarse: make([]int32, n),
		upperStart: slices.Repeat([]uint32{noSlot}, n), high: make([]byte, n*s.stride), low: make([]byte, n*s.stride),
	}
}

// exact is the vector of a slot.
func (v *vectorView) exact(slot uint32, _ []float32) ([]float32, error) { return v.vector(slot), nil }

// byID returns the slots by ID.
func (s *segment) byID() []uint32 {
	order := make([]uint32, s.len())
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, func(a, b uint32) int { return compareIDs(s.ids[a], s.ids[b]) })
	return order
}

// alive are all slots that have vectors.
func (v *vectorView) alive() []uint32 {
	out := make([]uint32, 0, v.live)
	v.spans(func(s span) {
		for i := range uint32(s.to - s.from) {
			if v.has(s.slot + i) {
				out = append(out, s.slot+i)
			}
		}
	})
	return out
}

// fill writes the row of a slot.
func (v *vectorView) fill(slot uint32, id uint64, c *coded) {
	s, row := v.at(slot)
	s.ids[row], s.sizes[row] = id, c.size
	v.code(slot, c)
	if len(s.vectors) > 0 { // else they are kept elsewhere, see Assemble
		copy(s.vectors[row*v.dims:], c.unit)
	}
}

// code writes what a row has of codes.
func (v *vectorView) code(slot uint32, c *coded) {
	s, row := v.at(slot)
	s.slacks[row], s.norms[row], s.coarse[row] = c.slack, c.norm, coarseNorm(c.code[:v.dims])
	kernel.Split(v.high(slot), v.low(slot), c.code)
}

// grow adds a row to all arrays.
func (s *segment) grow(sh shape, graph bool) {
	s.ids, s.sizes, s.slacks = append(s.ids, 0), append(s.sizes, 0), append(s.slacks, 0)
	s.norms, s.coarse = append(s.norms, 0), append(s.coarse, 0)
	s.upperStart = append(s.upperStart, noSlot)
	s.high, s.low = extended(s.high, sh.stride), extended(s.low, sh.stride)
	s.vectors = extended(s.vectors, sh.dims)
	if graph {
		s.links = extended(s.links, sh.cap0())
		for i := range sh.cap0() {
			s.links[len(s.links)-1-i] = noSlot
		}
	}
}

// extended is s with n more elements.
func extended[T any](s []T, n int) []T {
	s = slices.Grow(s, n)
	return s[:len(s)+n]
}

// mix makes independent bits of consecutive numbers (the finaliser of SplitMix64: Steele, Lea and Flood, "Fast
// Splittable Pseudorandom Number Generators", 2014).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func compareIDs(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func (r *readers) enter() uint64 {
	for {
		epoch := r.epoch.Load()
		r.inside[epoch&1].Add(1)
		if r.epoch.Load() == epoch {
			return epoch
		}
		r.inside[epoch&1].Add(-1)
	}
}

// saltOf is the salt of a slot.
func saltOf(slot uint32) uint32 { return uint32(mix(uint64(slot)) >> 33) }

// normAt is the norm of a slot, of those of the base and of the tail.
func normAt(base, tail []int32, slot uint32) int32 {
	if n := uint32(len(base)); slot >= n {
		return tail[slot-n]
	}
	return base[slot]
}
