package knn

import (
	"math"
	"slices"
	"sync/atomic"
)

// A list is within a reach if the square of the distance of its pivot is at most that many times the least one but one: the
// nearest pivot may be no more than the one vector that is asked for. A query that is like some vectors has few pivots near; one
// that is unlike all has many that are about as near.
const (
	// reachUnit is the stored value of a reach of 1; mostReach limits stored values.
	reachUnit, mostReach = 1000, 1 << 30
	// beyond is by how much more than the probes need a thorough search reaches, in parts of reachUnit.
	beyond = 1100
)

// inReach and inFarReach are the shares of the nearest of probes that are to be within reach, by default and for thorough searches;
// atMost and atFarMost those that the most that such searches look at are to have, whatever is within reach. Queries are often
// more foreign than probes.
var (
	inReach, inFarReach = [kinds]float64{own: 0.993, foreign: 0.99}, [kinds]float64{own: 0.9995, foreign: 0.9995}
	atMost, atFarMost   = [kinds]float64{own: 0.995, foreign: 0.998}, [kinds]float64{own: 0.9995, foreign: 0.9995}
)

// place is where one of the nearest of a probe is: which reach has its list, and how many members the lists have up to there.
type place struct{ reach, looked int }

// connect gives each slot that cannot be reached from the entry a link from one near it that can. A link that goes for
// it is one to a slot that others lead to; it takes some rounds only if that was not enough.
func (l *linker) connect() {
	for range 8 {
		reach := l.v.reachable()
		lost := reach.lost(l.v)
		if len(lost) == 0 {
			return
		}
		for _, slot := range lost {
			if !reach.reached(slot) {
				l.lead(reach, slot)
				reach.follow(l.v, slot)
			}
		}
	}
}

// reach knows which slots a walk at the lowest level can get to.
type reach struct {
	seen []uint64
	led  []uint32 // how many links lead to a slot
	todo []uint32
}

// reachable follows all links of the lowest level from the entry.
func (v *vectorView) reachable() *reach {
	r := &reach{seen: make([]uint64, (v.len()+63)/64), led: make([]uint32, v.len())}
	if v.hasEntry() {
		r.follow(v, v.entry)
	}
	return r
}

func (r *reach) reached(slot uint32) bool { return r.seen[slot>>6]>>(slot&63)&1 != 0 }

// follow marks a slot and what can be reached from it.
func (r *reach) follow(v *vectorView, slot uint32) {
	r.seen[slot>>6] |= 1 << (slot & 63)
	r.todo = append(r.todo[:0], slot)
	var links []uint32
	for len(r.todo) > 0 {
		slot = r.todo[len(r.todo)-1]
		r.todo = r.todo[:len(r.todo)-1]
		links = v.linksOf(links[:0], slot, 0)
		for _, to := range links {
			r.led[to]++
			if !r.reached(to) {
				r.seen[to>>6] |= 1 << (to & 63)
				r.todo = append(r.todo, to)
			}
		}
	}
}

// lost returns the slots that were not reached.
func (r *reach) lost(v *vectorView) []uint32 {
	var lost []uint32
	for slot := range uint32(v.len()) {
		if !r.reached(slot) && v.has(slot) {
			lost = append(lost, slot)
		}
	}
	return lost
}

// chooseReach sets the efforts of searches among lists to what the nearest of the probes need.
func (l *linker) chooseReach(probes []probe) {
	var places [kinds][]place
	for _, p := range probes {
		places[p.kind] = append(places[p.kind], p.places...)
	}
	e, half := &l.v.efforts, l.v.live/2
	e.normal, e.reach = need(places, inReach, atMost)
	e.thorough, e.farReach = need(places, inFarReach, atFarMost)
	e.normal = max(DefaultEfSearch, e.normal)
	e.thorough = max(DefaultEfThorough, 2*e.normal, e.thorough)
	e.farReach = min(e.farReach*beyond/reachUnit, mostReach)
	if l.looked(probes, e.reach) > half {
		e.normal, e.reach = max(e.normal, l.v.live/lookedAt+1), 0
	}
	if l.looked(probes, e.farReach) > half {
		e.thorough, e.farReach = max(e.thorough, l.v.live/lookedAt+1), 0
	}
}

// need is the effort and the reach that shares of places need.
func need(places [kinds][]place, within, most [kinds]float64) (ef, reach int) {
	reach = 1
	for kind, all := range places {
		if n := float64(len(all)); n > 0 {
			slices.SortFunc(all, func(a, b place) int { return a.reach - b.reach })
			reach = max(reach, all[int(within[kind]*n)].reach)
			slices.SortFunc(all, func(a, b place) int { return a.looked - b.looked })
			ef = max(ef, (all[int(most[kind]*n)].looked+lookedAt-1)/lookedAt)
		}
	}
	return ef, reach
}

// looked is how many vectors a search for a vector of the index compares on the average.
func (l *linker) looked(probes []probe, reach int) int {
	var sum atomic.Int64
	l.parallel(len(probes)/kinds, func(w *vectorWalker, i int) {
		w.encodeProbe(l.v, &probes[kinds*i+own])
		w.scanPivots(l.v, &w.query)
		limit := l.v.reached(&w.query, w.found, reach)
		for _, key := range w.found {
			if key < limit {
				sum.Add(int64(len(l.v.lists.members[slotOf(key, 0)])))
			}
		}
	})
	return int(sum.Load()) / max(1, len(probes)/kinds)
}

// reachOf is the least reach that has a pivot, if the square of its distance and the least one but one are given.
func reachOf(apart, least float64) int {
	switch reach := float64(max(0, apart)*reachUnit) / least; {
	case reach < mostReach-1:
		return int(reach) + 1
	case apart <= least:
		return reachUnit
	}
	return mostReach
}

// reached is a key above those of the pivots within reach, of all keys. The nearest is.
func (v *vectorView) reached(q *coded, keys []uint64, reach int) uint64 {
	two := lowest(keys, 2)
	apart := float64(max(0, v.apart(q, distOf(two[len(two)-1])))*float64(reach)) / reachUnit
	if dist := v.dist(q, apart); dist < math.MaxInt32-nearest {
		return max(two[0]+1, keyOf(int32(dist)+1, 0, 0))
	}
	return math.MaxUint64
}

// reach is that of a search which leaves the effort to the index. What few pass, and more than were calibrated for, is farther away.
func (x *Index) reach(v *vectorView, o SearchOptions) int {
	switch {
	case o.Filter != nil || o.K > DefaultK:
		return 0
	case o.Thorough && x.options.EfThorough == 0:
		return v.efforts.farReach
	case !o.Thorough && x.options.EfSearch == 0:
		return v.efforts.reach
	}
	return 0
}
