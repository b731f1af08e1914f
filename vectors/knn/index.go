package knn

import (
	"slices"
	"sync"
	"sync/atomic"

	"reconcile.dev/reconcile/schemas/sections"
)

// Index finds the vectors that are most similar to a query. Any number of goroutines may search while one changes it;
// changes wait for each other. A search sees the index as it was between two changes.
type Index struct {
	options Options
	current atomic.Pointer[view]
	readers readers
	walkers sync.Pool

	// writer is locked by a goroutine that changes the index, and protects the following fields.
	writer sync.Mutex
	linker linker
	// frozen says that base.links and tower of the view may be mapped from a file.
	frozen bool
	// dead are the slots that died and that links may still lead to.
	dead []uint32
	// changed counts the vectors that came and went since searches were calibrated.
	changed int
	// added counts the slots that were linked since the graph was last inspected.
	added int
	// From freed on, an epoch of readers, free slots and upper links in spare may be written.
	freed uint64
	// spare has by number of levels the starts of unused blocks of upper links.
	spare [maxLevel + 1][]uint32

	// names protects slots and order, and is held while the view that they belong to becomes the current one.
	names sync.RWMutex
	// slots are those of the IDs in the tail; those of the base are found by order, which has its slots by ID.
	slots map[uint64]uint32
	order []uint32
	// file is what the index was opened from; nil once it is no longer used.
	file *sections.File
}

// New makes an empty index with options and their defaults.
func New(o Options) (*Index, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return newIndex(o, &view{shape: shapeOf(o), entry: noSlot, efforts: leastEfforts}), nil
}

// newIndex makes an index of a view without tail.
func newIndex(o Options, v *view) *Index {
	x := &Index{options: o, slots: map[uint64]uint32{}}
	x.walkers.New = func() any { return newWalker(v.shape) }
	x.current.Store(v)
	return x
}

// Len returns the number of vectors that are live in the current view of the index.
func (x *Index) Len() int { return x.current.Load().live }

// Dims returns the number of dimensions of the index, from its options.
func (x *Index) Dims() int { return x.options.Dims }

// Options are those that it was built with.
func (x *Index) Options() Options { return x.options }

// Efforts returns the normal and the thorough effort of searches of the index, as numbers of candidates to keep.
func (x *Index) Efforts() (normal, thorough int) {
	v := x.current.Load()
	return x.effort(v, false), x.effort(v, true)
}

// Slots returns the number of slots of the index, used and empty: one more than the highest in use. A vector keeps its
// slot until it is replaced or deleted.
func (x *Index) Slots() int { return x.current.Load().len() }

// Slot looks up the slot of an id in the current view of the index; ok is false if no vector has the id.
func (x *Index) Slot(id uint64) (slot uint32, ok bool) {
	x.names.RLock()
	defer x.names.RUnlock()
	if slot, ok = x.slots[id]; ok {
		return slot, true
	}
	v := x.current.Load()
	i, ok := slices.BinarySearchFunc(x.order, id, func(slot uint32, id uint64) int {
		if int(slot) >= v.base.len() {
			return 1 // of a damaged file
		}
		return compareIDs(v.base.ids[slot], id)
	})
	if !ok || !v.has(x.order[i]) {
		return 0, false
	}
	return x.order[i], true
}

// ID returns the id of the vector in a slot of the index; ok is false for an empty slot.
func (x *Index) ID(slot uint32) (id uint64, ok bool) {
	v, leave := x.enter()
	defer x.readers.leave(leave)
	if int(slot) >= v.len() || !v.has(slot) {
		return 0, false
	}
	return v.id(slot), true
}

// Vector appends the vector of an ID to dst, with the length that it came with.
func (x *Index) Vector(dst []float32, id uint64) (vector []float32, ok bool) {
	v, leave := x.enter()
	defer x.readers.leave(leave)
	slot, ok := x.Slot(id)
	if !ok || int(slot) >= v.len() || !v.has(slot) {
		return dst, false
	}
	s, row := v.at(slot)
	for _, c := range v.vector(slot) {
		dst = append(dst, c*s.sizes[row])
	}
	return dst, true
}

// enter begins a read. The second result is the argument of readers.leave.
func (x *Index) enter() (*view, uint64) {
	epoch := x.readers.enter()
	return x.current.Load(), epoch
}

// readers counts the active readers, so that a writer knows when none is left that may read removed content. A reader
// belongs to the epoch in which it entered. The epoch advances only when no reader is left of the one before the present
// one; after two advances, all readers have left that were active before the first.
type readers struct {
	epoch  atomic.Uint64
	inside [2]struct {
		atomic.Int64
		_ [56]byte // a cache line of its own
	}
}

func (r *readers) leave(epoch uint64) { r.inside[epoch&1].Add(-1) }

// reached tries to advance to an epoch, without waiting, and reports whether it did.
func (r *readers) reached(epoch uint64) bool {
	for r.epoch.Load() < epoch {
		now := r.epoch.Load()
		if r.inside[(now+1)&1].Load() != 0 {
			return false
		}
		r.epoch.Store(now + 1)
	}
	return true
}
