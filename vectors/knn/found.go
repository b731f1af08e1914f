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
	l.parallel(len(slots), func(w *walker, i int) {
		w.salt = 0
		code := w.take(v, slots[i])
		self := keyOf(w.one(v, code, slots[i]), slots[i], 0)
		w.walk(v, code, 0, ef, 0, v.m, w.approach(v, code, ef)...)
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

// same reports whether two slots have the same code.
func (v *view) same(a, b uint32) bool {
	return slices.Equal(v.high(a), v.high(b)) && slices.Equal(v.low(a), v.low(b))
}
