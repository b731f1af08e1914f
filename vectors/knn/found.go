package knn

import "slices"

const (
	// brief is how many candidates a walk keeps that looks whether a vector finds itself.
	brief = 24
	// foundPasses is how often all vectors are looked for, foundRounds how often in between those that did not find
	// themselves, and those that a link was taken from.
	foundPasses, foundRounds = 4, 8
)

// findAll sees to it that each vector is found by a search for it that keeps as many candidates as links were chosen from. That
// a way leads to it from the entry is not enough: a walk goes only where it comes nearer. A link that goes for one may have been
// on the way to others, so that it takes some passes.
func (l *linker) findAll() {
	for range foundPasses {
		missed := l.missed(l.v.alive())
		if len(missed) == 0 {
			return
		}
		for range foundRounds {
			if missed = l.missed(l.leadAll(missed)); len(missed) == 0 || l.stopped() {
				break
			}
		}
		l.connect()
	}
}

// leadAll gives each of some slots a link. It returns these and the slots that the links led to before.
func (l *linker) leadAll(slots []uint32) []uint32 {
	reach := l.v.reachable()
	for _, slot := range slots {
		if before := l.lead(reach, slot); int(before) < l.v.len() {
			slots = append(slots, before)
		}
	}
	slices.Sort(slots)
	return slices.Compact(slots)
}

// missed are those of some slots that are not found by walks for them.
func (l *linker) missed(slots []uint32) []uint32 {
	return l.missedBy(l.missedBy(slots, brief), l.o.EfConstruction)
}

// missedBy are those of some slots that a walk for them, which keeps ef candidates, finds neither them nor what equals them.
func (l *linker) missedBy(slots []uint32, ef int) (missed []uint32) {
	v := l.v
	found := make([]bool, len(slots))
	l.parallel(len(slots), func(w *vectorWalker, i int) {
		w.salt = 0
		code := w.take(v, slots[i])
		self := keyOf(w.one(v, code, slots[i]), slots[i], 0)
		starts := w.approach(v, code, ef)
		w.wanted = self
		w.walk(v, code, 0, ef, 0, v.m, starts...)
		w.wanted = 0
		found[i] = slices.ContainsFunc(w.pool.keys, func(key uint64) bool {
			slot := slotOf(key, 0)
			return slot == slots[i] || key>>distShift == self>>distShift && v.same(slot, slots[i])
		})
	})
	for i, slot := range slots {
		if !found[i] && v.has(slot) {
			missed = append(missed, slot)
		}
	}
	return missed
}

// lead adds a link to a slot from one of those that a walk to it finds: the nearest that has room, or else the nearest
// that can do without its last link. It returns to which slot that led.
func (l *linker) lead(reach *reach, slot uint32) (before uint32) {
	v, w := l.v, l.walkers[0]
	w.salt = 0
	code := w.take(v, slot)
	w.walk(v, code, 0, l.o.EfConstruction, 0, v.m, w.descend(v, code, 0))
	host := uint32(noSlot)
	for _, key := range w.pool.keys {
		at := slotOf(key, 0)
		if at == slot || !v.has(at) || !reach.reached(at) || slices.Contains(v.links(at, 0), slot) {
			continue
		}
		block := v.links(at, 0)
		last := block[len(block)-1]
		if int(last) >= v.len() {
			host = at
			break
		}
		if host == noSlot && reach.led[last] > 1 {
			host = at
		}
	}
	if host == noSlot {
		if host = v.entry; slices.Contains(v.links(host, 0), slot) {
			return noSlot
		}
	}
	if before = v.replaceLast(host, slot); int(before) < v.len() {
		reach.led[before]--
	}
	reach.led[slot]++
	return before
}
