package knn

import "slices"

// A key is a candidate of a walk: its distance, then its slot with the salt of the walk, then whether its links were
// followed. Keys sort by distance, and equal distances by slot.
const (
	slotShift = 1
	distShift = 32
	done      = 1
	// nearest is added to distances, see far: it is more than any of them is below 0.
	nearest = 1 << 30
	noSlot  = 1<<32 - 1
)

// keyOf makes the key of a slot at a distance.
func keyOf(dist int32, slot, salt uint32) uint64 {
	return uint64(uint32(nearest+dist))<<distShift | uint64(slot^salt)<<slotShift
}

func distOf(key uint64) int32               { return int32(key>>distShift) - nearest }
func slotOf(key uint64, salt uint32) uint32 { return uint32(key)>>slotShift ^ salt }

// pool has the best candidates so far, ascending: a sorted array, which for some hundreds is faster than a heap.
type pool struct {
	keys  []uint64
	limit int
	// alike is how many candidates of one distance are enough; there are up to twice as many. A walk that comes upon a
	// thousand equal vectors could else never leave them.
	alike int
}

func (p *pool) reset(limit, alike int) {
	p.keys = slices.Grow(p.keys[:0], limit+1)
	p.limit, p.alike = limit, alike
}

// crowded reports whether there are enough candidates at the distance of a key, whose place is at.
func (p *pool) crowded(at int, key uint64) bool {
	before, after := at-p.alike, at+p.alike-1
	return before >= 0 && p.keys[before]>>distShift == key>>distShift ||
		after < len(p.keys) && p.keys[after]>>distShift == key>>distShift
}

// full reports whether a candidate must be better than the worst one to get in.
func (p *pool) full() bool { return len(p.keys) >= p.limit }

// worst is the key that a candidate has to be below to get in.
func (p *pool) worst() uint64 {
	if !p.full() {
		return 1<<64 - 1
	}
	return p.keys[len(p.keys)-1]
}

// add puts a candidate in its place and returns that; when it is not good enough, the length.
func (p *pool) add(key uint64) int {
	n := len(p.keys)
	if n >= p.limit {
		if key >= p.keys[n-1] {
			return n
		}
		n--
	}
	low := 0
	for rest := n; rest > 0; {
		half := (rest + 1) / 2
		if p.keys[low+half-1] < key {
			low += half
		}
		rest -= half
	}
	if p.crowded(low, key) {
		return len(p.keys)
	}
	p.keys = p.keys[:n+1]
	copy(p.keys[low+1:], p.keys[low:n])
	p.keys[low] = key
	return low
}

// alike is how many equal candidates a walk keeps at least.
func alike(o SearchOptions) int { return max(16, o.K) }
