package knn

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"reconcile.dev/reconcile/vectors/kernel"
)

// linker adds slots to the graph of a view in batches: those of a batch look for their neighbours in the graph before it,
// and among each other; then all links are set in a fixed order. The threads share the work of each step, and the result
// does not depend on their number.
type linker struct {
	v       *vectorView
	o       Options
	walkers []*vectorWalker       // one for each thread
	failed  atomic.Pointer[error] // to read a vector
	stop    <-chan struct{}       // closing it stops the work half done; nil: never
}

// stopped reports whether the work was cancelled.
func (l *linker) stopped() bool {
	select {
	case <-l.stop:
		return true
	default:
		return false
	}
}

// backlink is a link to add: to `to` at a level, from a new slot.
type backlink struct {
	to, from uint32
	level    int
}

// parallel calls do for 0 to n-1, each once, unless it is stopped. A thread does some that follow each other: they
// often need the same memory.
func (l *linker) parallel(n int, do func(w *vectorWalker, i int)) {
	run := min(16, max(1, n/(8*len(l.walkers))))
	var next atomic.Int64
	work := func(w *vectorWalker) {
		for {
			to := int(next.Add(int64(run)))
			for i := to - run; i < min(to, n); i++ {
				if l.stopped() {
					return
				}
				do(w, i)
			}
			if to >= n {
				return
			}
		}
	}
	var others sync.WaitGroup
	for _, w := range l.walkers[1:max(1, min(n, len(l.walkers)))] {
		others.Go(func() { work(w) })
	}
	work(l.walkers[0])
	others.Wait()
}

const (
	// firstBatch and batchSize are the least and the largest number of slots that are linked at once, if there are as many.
	// The larger a batch, the more of what one looks at is still in the cache from another that is near it.
	firstBatch, batchSize = 256, 4096
	// linkedFor is how many slots are linked at least for each one of a batch after the first ones.
	linkedFor = 4
	// peerReach is how many others of a batch a slot is compared with that come before it, and how many that come after,
	// in the order in which near ones stand together.
	peerReach = 512
)

// addAll links slots whose rows are filled and whose blocks are empty, in batches that grow with the graph.
func (l *linker) addAll(slots []uint32, progress func(linked int)) {
	for linked := 0; linked < len(slots) && !l.stopped(); {
		n := min(batchSize, max(firstBatch, linked/linkedFor), len(slots)-linked)
		l.add(slots[linked : linked+n])
		linked += n
		if progress != nil {
			progress(linked)
		}
	}
}

// add links a batch of slots, all of one segment, and updates entry and top of the view.
func (l *linker) add(batch []uint32) {
	v := l.v
	levels := make([]int, len(batch))
	for i, slot := range batch {
		levels[i] = v.levelOf(v.id(slot))
	}
	ways := make([]descent, len(batch))
	// Those that are near each other are linked one after the other: they meet the same others.
	l.parallel(len(batch), func(w *vectorWalker, i int) { ways[i] = l.approach(w, batch[i], levels[i], i) })
	slices.SortFunc(ways, func(a, b descent) int { return cmp.Or(slices.Compare(a.by, b.by), cmp.Compare(a.index, b.index)) })
	out := make([][]backlink, len(batch))
	l.parallel(len(batch), func(w *vectorWalker, i int) { out[ways[i].index] = l.choose(w, batch, levels, ways, i) })
	l.addBack(slices.Concat(out...))
	for i, slot := range batch {
		l.anchor(slot)
		if !v.hasEntry() || levels[i] > v.top {
			v.entry, v.top = slot, levels[i]
		}
	}
}

// anchor sees to it that a new slot can be found: if all its neighbours prefer others, the nearest has to take it for
// its last link.
func (l *linker) anchor(slot uint32) {
	links := l.v.links(slot, 0)
	for _, to := range links {
		if to != noSlot && slices.Contains(l.v.links(to, 0), slot) {
			return
		}
	}
	if links[0] != noSlot {
		l.v.replaceLast(links[0], slot)
	}
}

// replaceLast gives a slot a link at the lowest level: an unused one, or else its last one. It returns the slot that the
// link led to before.
func (v *vectorView) replaceLast(slot, to uint32) (before uint32) {
	block := v.links(slot, 0)
	at := slices.Index(block, noSlot)
	if at < 0 {
		at = len(block) - 1
	}
	before = block[at]
	atomic.StoreUint32(&block[at], to)
	return before
}

// descent is the path of a descent to the level where links are searched.
type descent struct {
	index int      // of the slot in the batch
	by    []uint32 // the slots at which it left the levels above
	start []uint64 // the key at its end; empty without an entry
}

// approach descends to the highest level of a slot.
func (l *linker) approach(w *vectorWalker, slot uint32, level, index int) descent {
	v := l.v
	if !v.hasEntry() {
		return descent{index: index}
	}
	w.salt = saltOf(slot)
	start := w.descend(v, w.take(v, slot), min(level, v.top))
	return descent{index, slices.Clone(w.way), []uint64{start}}
}

// choose sets the links of the slot of the batch that came the way at a place, at all its levels, and returns the links
// back.
func (l *linker) choose(w *vectorWalker, batch []uint32, levels []int, ways []descent, at int) []backlink {
	v, i, starts := l.v, ways[at].index, ways[at].start
	slot := batch[i]
	code := w.take(v, slot)
	w.salt = saltOf(slot)
	l.meet(w, code, batch, ways[max(0, at-peerReach):min(at+peerReach+1, len(ways))], i)
	var back []backlink
	for level := levels[i]; level >= 0; level-- {
		w.pool.reset(l.o.EfConstruction, v.m)
		if v.hasEntry() && level <= v.top {
			w.walk(v, code, level, l.o.EfConstruction, 0, v.m, starts...)
			starts = append(starts[:0], w.pool.keys...)
		}
		for _, p := range w.peers {
			if levels[p.index] >= level {
				w.pool.add(p.key)
			}
		}
		links := w.choose(v, code, slot, level, w.pool.keys, v.m)
		v.setLinks(slot, level, links)
		for _, to := range links {
			back = append(back, backlink{to, slot, level})
		}
	}
	return back
}

// peer is another slot of the batch.
type peer struct {
	key   uint64
	index int
}

// meet sets w.peers to the slots of the batch that came some ways, but for slot i of it.
func (l *linker) meet(w *vectorWalker, code *coded, batch []uint32, ways []descent, i int) {
	w.slots, w.peers = w.slots[:0], w.peers[:0]
	for _, from := range ways {
		w.slots = append(w.slots, batch[from.index])
	}
	w.measure(l.v, code)
	for k, slot := range w.slots { // still in the order of the ways: all are in one segment
		if index := ways[k].index; index != i {
			w.peers = append(w.peers, peer{keyOf(w.dists[k], slot, w.salt), index})
		}
	}
}

// choose picks at most m of the candidates, nearest first, that lie in different directions: one that is nearer to
// another link than to the vector itself is reached through that link (Malkov and Yashunin, "Efficient and Robust
// Approximate Nearest Neighbor Search Using Hierarchical Navigable Small World Graphs", 2020, algorithm 4). Candidates that
// equal the vector take at most half of the links. The result is valid until the next call.
func (w *vectorWalker) choose(v *vectorView, code *coded, slot uint32, level int, candidates []uint64, m int) []uint32 {
	w.kept = w.kept[:0]
	self := w.one(v, code, slot)
	equal := 0
	for _, key := range candidates {
		to, dist := slotOf(key, w.salt), distOf(key)
		if dist <= self && equal >= m/2 || !v.has(to) || !w.apart(v, code, to, dist, level) {
			continue
		}
		if dist <= self {
			equal++
		}
		if w.kept = append(w.kept, to); len(w.kept) == m {
			break
		}
	}
	return w.kept
}

// apart reports whether a candidate, at a distance from a code, is not nearer to a kept link than to the code: at the lowest
// level not only by a tenth of the squared distance, which keeps a few more links that lead far (Subramanya et al., "DiskANN:
// Fast Accurate Billion-point Nearest Neighbor Search on a Single Node", 2019). Above it, where few of a group of near vectors
// are, that would keep links within the group instead of some that lead out of it.
func (w *vectorWalker) apart(v *vectorView, code *coded, slot uint32, dist int32, level int) bool {
	if len(w.kept) == 0 {
		return true
	}
	q := w.offer(v, slot)
	w.slots = append(w.slots[:0], w.kept...)
	w.measure(v, q)
	tenths := int64(10)
	if level == 0 {
		tenths = 11
	}
	limit := 10 * (int64(code.norm) + int64(dist))
	for _, d := range w.dists {
		if tenths*(int64(q.norm)+int64(d)) < limit {
			return false
		}
	}
	return true
}

// addBack adds links to blocks that exist; where there are too many, the best are chosen.
func (l *linker) addBack(back []backlink) {
	slices.SortFunc(back, func(a, b backlink) int {
		if a.level != b.level {
			return a.level - b.level
		}
		if a.to != b.to {
			return int(a.to) - int(b.to)
		}
		return int(a.from) - int(b.from)
	})
	var groups [][]backlink
	for len(back) > 0 {
		n := 1
		for n < len(back) && back[n].level == back[0].level && back[n].to == back[0].to {
			n++
		}
		groups = append(groups, back[:n])
		back = back[n:]
	}
	l.parallel(len(groups), func(w *vectorWalker, i int) { l.extend(w, groups[i]) })
}

// extend adds the links of a group, which go to one slot at one level.
func (l *linker) extend(w *vectorWalker, group []backlink) {
	v, slot, level := l.v, group[0].to, group[0].level
	room := v.m
	if level == 0 {
		room = v.cap0()
	}
	links := v.linksOf(w.rest[:0], slot, level)
	for _, b := range group {
		if !slices.Contains(links, b.from) {
			links = append(links, b.from)
		}
	}
	w.rest = links
	if len(links) > room {
		links = w.prune(v, slot, level, links, room)
	}
	v.setLinks(slot, level, links)
}

// prune chooses which of the links of a slot to keep.
func (w *vectorWalker) prune(v *vectorView, slot uint32, level int, links []uint32, room int) []uint32 {
	w.salt = saltOf(slot)
	code := w.take(v, slot)
	w.slots = append(w.slots[:0], links...)
	w.measure(v, code)
	w.pool.reset(len(links), 0)
	for i, dist := range w.dists {
		w.pool.keys = append(w.pool.keys, keyOf(dist, w.slots[i], w.salt))
	}
	slices.Sort(w.pool.keys)
	return w.choose(v, code, slot, level, w.pool.keys, room)
}

// linkerOf is the linker, working on a view.
func (x *Index) linkerOf(v *vectorView) *linker {
	x.linker.v, x.linker.o = v, x.options
	for len(x.linker.walkers) < x.options.Threads {
		x.linker.walkers = append(x.linker.walkers, newWalker(v.shape))
	}
	return &x.linker
}

// makeBlocks gives each slot an empty block of links.
func (v *vectorView) makeBlocks() {
	v.graph, v.entry, v.top, v.lists = true, noSlot, 0, lists{}
	for _, s := range []*segment{&v.base, &v.tail} {
		s.links = slices.Repeat([]uint32{noSlot}, s.len()*v.cap0())
		s.upperStart = slices.Repeat([]uint32{noSlot}, s.len())
	}
	v.upper = nil
}

// same reports whether two slots have the same code.
func (v *vectorView) same(a, b uint32) bool {
	return slices.Equal(v.high(a), v.high(b)) && slices.Equal(v.low(a), v.low(b))
}

// take sets w.linked to the code of a slot.
func (w *vectorWalker) take(v *vectorView, slot uint32) *coded {
	kernel.Join(w.linked.code, v.high(slot), v.low(slot))
	w.linked.sum, w.linked.norm = kernel.CodeSums(w.linked.code)
	w.linked.ratio = unitRatio
	return &w.linked
}
