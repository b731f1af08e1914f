package knn

import "slices"

// vacuum removes the links to dead slots and replaces them by links to others, makes all slots reachable, and frees
// the dead slots of the tail for reuse. Until then a walk passes through dead slots, and does not return them (Singh
// et al., "FreshDiskANN: A Fast and Accurate Graph-Based ANN Index for Streaming Similarity Search", 2021). The
// caller holds the writer's lock.
func (x *Index) vacuum() {
	v := *x.current.Load()
	v.version++
	if v.live == 0 {
		x.clear(&v)
		return
	}
	if v.graph {
		l := x.linkerOf(&v)
		if len(x.dead) > 0 {
			l.parallel((v.len()+repairRun-1)/repairRun, func(w *vectorWalker, i int) { l.repair(w, i*repairRun) })
			v.enterAtHighest()
		}
		l.connect()
		for _, slot := range x.dead {
			s, row := v.at(slot)
			if v.upperLinksOf(s, row) != nil {
				level := v.levelOf(s.ids[row])
				x.spare[level] = append(x.spare[level], s.upperStart[row])
			}
		}
	}
	if v.inLists() {
		v.removeDead()
	}
	free := slices.Clone(v.free)
	for _, slot := range x.dead {
		if int(slot) >= v.base.len() {
			free = append(free, slot)
		}
	}
	slices.SortFunc(free, func(a, b uint32) int { return int(b) - int(a) })
	v.free, x.dead, x.added = free, nil, 0
	x.freed = x.readers.epoch.Load() + 2
	x.current.Store(&v)
}

// repairRun is how many slots are repaired as one piece of work.
const repairRun = 1024

// repair replaces the links to dead slots of a run of slots.
func (l *linker) repair(w *vectorWalker, from int) {
	v := l.v
	for slot := uint32(from); int(slot) < min(from+repairRun, v.len()); slot++ {
		if !v.has(slot) {
			continue
		}
		for level := v.levelOf(v.id(slot)); level >= 0; level-- {
			links := v.linksOf(w.rest[:0], slot, level)
			w.rest = links
			if slices.ContainsFunc(links, func(to uint32) bool { return !v.has(to) }) {
				v.setLinks(slot, level, w.repairLinks(v, slot, level, links))
			}
		}
	}
}

// repairLinks returns the links of a slot without the dead ones, and with as many neighbours of these, if they lie in
// directions that no other link has. It reads the links of dead slots only, which no goroutine changes meanwhile.
func (w *vectorWalker) repairLinks(v *vectorView, slot uint32, level int, links []uint32) []uint32 {
	w.salt = saltOf(slot)
	w.kept = w.kept[:0]
	var near []uint32
	for _, to := range links {
		if v.has(to) {
			w.kept = append(w.kept, to)
		} else {
			near = v.linksOf(near, to, level)
		}
	}
	room := len(links)
	slices.Sort(near)
	near = slices.DeleteFunc(slices.Compact(near), func(to uint32) bool {
		return to == slot || !v.has(to) || slices.Contains(links, to)
	})
	w.slots = append(w.slots[:0], near...)
	code := w.take(v, slot)
	w.measure(v, code)
	w.pool.reset(len(near), 0)
	for i, dist := range w.dists {
		w.pool.keys = append(w.pool.keys, keyOf(dist, w.slots[i], w.salt))
	}
	slices.Sort(w.pool.keys)
	for _, key := range w.pool.keys {
		if len(w.kept) >= room {
			break
		}
		if to := slotOf(key, w.salt); w.apart(v, code, to, distOf(key), level) {
			w.kept = append(w.kept, to)
		}
	}
	if len(w.kept) == 0 && len(w.pool.keys) > 0 {
		w.kept = append(w.kept, slotOf(w.pool.keys[0], w.salt))
	}
	return w.kept
}

// enterAtHighest makes the living slot of the highest level the entry, of those the one with the lowest ID.
func (v *vectorView) enterAtHighest() {
	v.entry, v.top = noSlot, 0
	for slot := range uint32(v.len()) {
		if !v.has(slot) {
			continue
		}
		level := v.levelOf(v.id(slot))
		if !v.hasEntry() || level > v.top || level == v.top && v.id(slot) < v.id(v.entry) {
			v.entry, v.top = slot, level
		}
	}
}
