package knn

import (
	"math"
	"slices"

	"reconcile.dev/reconcile/vectors/kernel"
)

// Numbers of the lists.
const (
	// listed is how many vectors a list has on average, and mostLists how many lists there are at most.
	listed, mostLists = 64, 1024
	// drawn is from how many vectors for each list pivots are chosen, movedBy to the middle of how many they are moved, and moves how
	// often.
	drawn, movedBy, moves = 12, 24, 2
	// lookedAt is how many vectors a search compares for each one that it keeps.
	lookedAt = 8
	// tightenAfter is after how many more candidates a search tightens the limit of their distances.
	tightenAfter = 32
	// fetchedOfList is how many bytes of the codes of the next list are fetched.
	fetchedOfList = 4096
)

// lists are groups of near slots, each around a pivot: what the codes in it are on average. Views share them: what changes
// is another array.
type lists struct {
	pivots  segment // has the upper nibbles of codes only: what a pivot is
	members [][]uint32
}

// makeLists divides all slots into lists, if they are enough.
func (l *linker) makeLists() {
	v := l.v
	v.lists = lists{}
	if v.live < fitFrom || v.dims < graphDims {
		return
	}
	alive := v.alive()
	n := min(len(alive)/listed, mostLists)
	sample := sampleOfSlots(alive, n*movedBy)
	l.drawPivots(sampleOfSlots(sample, n*drawn), n)
	for range moves {
		l.movePivots(l.divide(sample))
	}
	v.lists.members = l.divide(alive)
}

// drawPivots chooses at most n of some slots for pivots, each by chance: the farther from all before, the likelier (Arthur and
// Vassilvitskii, "k-means++: The Advantages of Careful Seeding", 2007).
func (l *linker) drawPivots(sample []uint32, n int) {
	v, w := l.v, l.walkers[0]
	p, low := v.pivotsOf(n), make([]byte, v.stride)
	apart := slices.Repeat([]uint64{math.MaxUint32}, len(sample))
	for i, next := 0, 0; i < n; i++ {
		code := w.take(v, sample[next])
		v.setPivot(&p, i, code.code, low)
		w.slots = append(w.slots[:0], sample...) // ascending: their order stays
		w.weigh(v, code)
		sum := uint64(0)
		for k, dist := range w.dists {
			apart[k] = min(apart[k], uint64(max(0, code.norm+dist)))
			sum += apart[k]
		}
		if sum == 0 { // all others equal a pivot
			p = p.first(i+1, v.stride)
			break
		}
		for rest := mix(uint64(i)) % sum; ; next = (next + 1) % len(sample) {
			if rest < apart[next] {
				break
			}
			rest -= apart[next]
		}
	}
	v.lists.pivots = p
}

// pivotsOf has room for n pivots.
func (s shape) pivotsOf(n int) segment {
	return segment{coarse: make([]int32, n), high: make([]byte, n*s.stride)}
}

// first are the first n pivots.
func (s *segment) first(n, stride int) segment {
	return segment{coarse: s.coarse[:n], high: s.high[:n*stride]}
}

// setPivot makes the upper nibbles of a code a pivot. low is scratch.
func (s shape) setPivot(p *segment, i int, code []int8, low []byte) {
	p.coarse[i] = coarseNorm(code[:s.dims])
	kernel.Split(p.high[i*s.stride:(i+1)*s.stride], low, code)
}

// divide returns for each pivot which slots are nearer to it than to the others.
func (l *linker) divide(slots []uint32) [][]uint32 {
	v := l.v
	of := make([]uint32, len(slots))
	l.parallel(len(slots), func(w *vectorWalker, i int) { of[i] = w.listOf(v, slots[i]) })
	members := make([][]uint32, len(v.lists.pivots.coarse))
	for i, slot := range slots {
		members[of[i]] = append(members[of[i]], slot)
	}
	return members
}

// listOf is the number of the pivot that is nearest to a slot.
func (w *vectorWalker) listOf(v *vectorView, slot uint32) uint32 {
	w.scanPivots(v, w.take(v, slot))
	return slotOf(slices.Min(w.found), 0)
}

// scanPivots sets w.found to the keys of all pivots for a code.
func (w *vectorWalker) scanPivots(v *vectorView, q *coded) {
	p := &v.lists.pivots
	norms, shift, less := w.scanParts(v, q, span{p, 0, len(p.coarse), 0}, false)
	w.found = slices.Grow(w.found[:0], len(w.dists))[:len(w.dists)]
	for i, dot := range w.dists {
		w.found[i] = keyOf(far(norms[i], dot<<shift-less, q.ratio), uint32(i), 0)
	}
}

// movePivots moves each pivot to the middle of its members.
func (l *linker) movePivots(members [][]uint32) {
	v := l.v
	p := v.pivotsOf(len(members))
	l.parallel(len(members), func(w *vectorWalker, i int) {
		sums := make([]int32, 2*v.stride)
		for _, slot := range members[i] {
			for k, x := range w.take(v, slot).code {
				sums[k] += int32(x)
			}
		}
		for k, sum := range sums {
			w.linked.code[k] = int8(sum / int32(max(1, len(members[i]))))
		}
		v.setPivot(&p, i, w.linked.code, make([]byte, v.stride))
	})
	v.lists.pivots = p
}

// enlist adds slots to their lists.
func (w *vectorWalker) enlist(v *vectorView, slots []uint32) {
	v.lists.members = slices.Clone(v.lists.members)
	for _, slot := range slots {
		at := w.listOf(v, slot)
		v.lists.members[at] = append(v.lists.members[at], slot)
	}
}

// removeDead takes slots that died out of the lists.
func (v *vectorView) removeDead() {
	gone := func(slot uint32) bool { return int(slot) >= v.len() || !v.has(slot) }
	fresh := make([][]uint32, len(v.lists.members))
	for i, members := range v.lists.members {
		fresh[i] = members
		if slices.ContainsFunc(members, gone) {
			fresh[i] = slices.DeleteFunc(slices.Clone(members), gone)
		}
	}
	v.lists.members = fresh
}

// inLists reports whether the vectors are in lists.
func (v *vectorView) inLists() bool { return len(v.lists.members) > 0 }

// scanLists compares the query with the members of the nearest lists, until as many are compared as it is to look at, or those
// within reach are.
func (w *vectorWalker) scanLists(v *vectorView, o SearchOptions) {
	w.best.reset(kept(v, o))
	w.scanPivots(v, &w.query)
	near, most := len(w.found), lookedAt*o.Ef
	if o.reach > 0 {
		near = split(w.found, v.reached(&w.query, w.found, o.reach))
	}
	passed := w.scanNearest(v, o, w.found[:near], most)
	if least := min(most, lookedAt*o.K); passed < least {
		w.scanNearest(v, o, w.found[near:], least-passed)
	}
	w.rerank(v, o, w.candidates(v, o))
}

// scanNearest compares the query with the members of the nearest of some lists, until want pass, and returns how many
// do.
func (w *vectorWalker) scanNearest(v *vectorView, o SearchOptions, keys []uint64, want int) (passed int) {
	for len(keys) > 0 && passed < want {
		next := lowest(keys, 1+(want-passed)*len(v.lists.members)/v.live)
		keys = keys[len(next):]
		for i, key := range next {
			if i+1 < len(next) {
				w.fetchList(v, v.lists.members[slotOf(next[i+1], 0)])
			}
			passed += w.scanList(v, o, v.lists.members[slotOf(key, 0)])
			w.tighten(v, o, tightenAfter)
			if passed >= want {
				break
			}
		}
	}
	return passed
}

// fetchList has the begin of what scanList reads of a list fetched.
func (w *vectorWalker) fetchList(v *vectorView, members []uint32) {
	if len(members) == 0 || int(members[0]) >= v.base.len() {
		return
	}
	from, rows := int(members[0]), min(len(members), fetchedOfList/v.stride)
	kernel.Prefetch(v.base.high[from*v.stride : min((from+rows)*v.stride, len(v.base.high))])
	kernel.Prefetch(v.base.coarse[from:min(from+rows, v.base.len())])
}

// scanList compares the query with the members of a list, and returns how many pass.
func (w *vectorWalker) scanList(v *vectorView, o SearchOptions, members []uint32) (passed int) {
	if n := len(members); n > 0 && int(members[n-1]) < v.base.len() && members[n-1]-members[0] == uint32(n-1) {
		return w.sieveSpan(v, o, span{&v.base, int(members[0]), int(members[0]) + n, members[0]})
	}
	w.slots = w.slots[:0]
	for _, slot := range members {
		if int(slot) < v.len() && o.passes(v, slot) {
			w.slots = append(w.slots, slot)
		}
	}
	w.sieveSlots(v)
	return len(w.slots)
}

// flat returns the members of all lists, one list after the other, with slots as they will be, and where each list ends.
func (l *lists) flat(moved []uint32) (ends, all []uint32) {
	for _, members := range l.members {
		for _, slot := range members {
			if int(slot) < len(moved) && moved[slot] != noSlot {
				all = append(all, moved[slot])
			}
		}
		ends = append(ends, uint32(len(all)))
	}
	return ends, all
}

// membersOf are the members of the lists that end there; ok is false if these are not the ends of lists of all slots.
func membersOf(ends, all []uint32) (members [][]uint32, ok bool) {
	members = make([][]uint32, len(ends))
	from := uint32(0)
	for i, to := range ends {
		if to < from || int(to) > len(all) {
			return nil, false
		}
		members[i] = all[from:to:to]
		from = to
	}
	return members, int(from) == len(all)
}
