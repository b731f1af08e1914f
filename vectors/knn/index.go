// Package knn finds the vectors that are most similar to a query: k nearest neighbours by the cosine of the angle, in
// an index that is a function of the vectors.
//
// # How it searches
//
// A vector is stored twice: exactly, scaled to length one, and as a code of 8 bits a component, of the vector in a
// random rotation, see package kernel, minus the mean of all: this separates vectors that have much in common. Codes
// are stored as two planes of nibbles. A search compares codes by their distance, and the best exactly.
//
// Up to [Options.GraphFrom] vectors are in lists of near ones, each around a pivot (Sivic and Zisserman, "Video Google: A Text
// Retrieval Approach to Object Matching in Videos", 2003). A search compares the codes of the lists whose pivots are nearest: by
// default those whose pivots are not much farther than the nearest one (Chen et al., "SPANN: Highly-efficient Billion-scale
// Approximate Nearest Neighborhood Search", 2021), else until they are many times as many as ef. If that is most vectors, or these
// are few, it looks at no lists. Lists are made in a tenth of the time that a graph takes.
//
// Larger sets are in a graph that is walked (Malkov and Yashunin, "Efficient and Robust Approximate Nearest Neighbor
// Search Using Hierarchical Navigable Small World Graphs", 2020): from the entry at the highest level greedily down, at
// the level above the lowest among some, the more the larger ef is, then at the lowest level among the ef best until
// none of them has a better neighbour. A walk reads only the upper nibbles, if a sample of the vectors shows that these
// keep the order: memory access is its cost. All ef, and as many more as needed to include the nearest of a sample, are
// compared by whole codes, and of these exactly, in their order, until the error bounds of codes prove that no other
// can be among the best. A walk that would meet most of the vectors is replaced by a scan of the codes. A filter takes
// part in the walk: slots that do not pass are walked through. If few slots pass, they are scanned.
//
// The necessary ef, and how much farther pivots may be, depends on the vectors. A build searches for some of them, as
// if they were not in the index, and for points between and beyond some, compares the results with exact searches, and
// chooses the least values that find enough: for the default and for thorough searches, see [Index.Efforts].
//
// An exact search scans the codes of 8 bits, which bound the similarity of a vector from above, and compares vectors in
// that order until none of the rest can be among the best.
//
// # How it is built
//
// Only integers decide the structure: distances of codes, which are made, and calibrated, by floating-point arithmetic
// that gives the same on every machine. Levels follow from a hash of the ID. Vectors are linked in the order of their
// IDs, in batches: those of a batch look for neighbours in the graph before it, and among those of the batch that
// arrive at nearly the same place, all at the same time; then the links are set in a fixed order. So [Build] makes the
// same bytes of the same vectors in any order, with any number of threads, on any processor. Later changes
// ([Index.Put], [Index.Delete]) give the same answers to the extent that a walk finds them, and the same bytes again
// after the next Build. When the number of changes reaches the number of calibrated vectors, searches are calibrated
// again.
//
// # Changes
//
// Searches take no lock. A change is published as a new view of the same arrays; a search keeps the view that it began
// with and sees nothing of later changes. Slots are reused when no search is left that may still read their old
// content. A replaced or deleted vector stays in the graph as a path to others until a number of them is dead; then all
// links to them are replaced by links to their neighbours, and slots that became unreachable are linked again.
//
// # Format
//
// [Index.AppendTo] writes a file of package sections; n is the number of slots:
//
//	header   options, sizes, entry, number of lists, scale of codes, efforts: 8 bytes each, see header
//	centre   4 bytes a dimension: what was taken from rotated vectors, float32
//	ids      8 n bytes
//	order    4 n bytes: the slots by ID
//	sizes    4 n bytes: lengths of the vectors as they came, float32
//	slacks   4 n bytes: distances of the rotated vectors from their codes, float32
//	norms    4 n bytes: sums of the squares of codes, int32
//	coarse   4 n bytes: the same of what their upper nibbles tell
//	upper    4 n bytes: where the links above the lowest level begin, or 2^32-1
//	high     n rows of the upper nibbles of codes, half a byte a dimension, padded to a multiple of 64
//	low      n rows of the lower nibbles
//	lists    four sections: for each list where it ends, 4 bytes; the norms of pivots, 4 bytes; the slots, 4 n bytes, list by
//	         list; the upper nibbles of pivots; empty with a graph or without lists
//	links    n blocks of 2 M slots, 4 bytes each, unused ones 2^32-1; then the upper links, M slots a level; nothing without a graph
//	vectors  n rows of 4 bytes a dimension, of length one
//
// [Open] uses the bytes in place, as they are mapped from a file, and reads the header and the checksums only. No content causes a panic;
// [Index.Verify] checks everything. Vectors that are put later are in memory.
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
	current atomic.Pointer[vectorView]
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
	// file is what the index was opened from; nil once it is not used any more.
	file *sections.File
}

// New makes an empty index with options and their defaults.
func New(o Options) (*Index, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	return newIndex(o, &vectorView{shape: shapeOf(o), entry: noSlot, efforts: leastEfforts}), nil
}

// newIndex makes an index of a view without tail.
func newIndex(o Options, v *vectorView) *Index {
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
func (x *Index) enter() (*vectorView, uint64) {
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
