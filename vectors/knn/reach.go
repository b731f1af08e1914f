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

// locate sets where the nearest of a probe are, whose code is w.query: of slots that are equally near the first ones met.
func (w *walker) locate(v *view, p *probe, near []uint32) {
	w.scanPivots(v, &w.query)
	slices.Sort(w.found)
	least, looked := v.apart(&w.query, distOf(w.found[min(1, len(w.found)-1)])), 0
	for _, key := range w.found {
		members := v.lists.members[slotOf(key, 0)]
		looked += len(members)
		for _, slot := range near {
			if _, ok := slices.BinarySearch(members, slot); !ok { // after Build and refit, members ascend
				continue
			}
			if p.places = append(p.places, place{reachOf(v.apart(&w.query, distOf(key)), least), looked}); len(p.places) == p.most {
				return
			}
		}
	}
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
	l.parallel(len(probes)/kinds, func(w *walker, i int) {
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
func (v *view) reached(q *coded, keys []uint64, reach int) uint64 {
	two := lowest(keys, 2)
	apart := float64(max(0, v.apart(q, distOf(two[len(two)-1])))*float64(reach)) / reachUnit
	if dist := v.dist(q, apart); dist < math.MaxInt32-nearest {
		return max(two[0]+1, keyOf(int32(dist)+1, 0, 0))
	}
	return math.MaxUint64
}
