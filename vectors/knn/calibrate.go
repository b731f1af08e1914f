package knn

import (
	"slices"
)

// Constants of the calibration on samples of the vectors.
const (
	// fitFrom is from how many vectors on codes are made to fit them, and searches are calibrated.
	fitFrom = 256
	// fitted is of how many vectors codes are made to fit, judged with how many it is judged whether their upper nibbles keep
	// the order, and asked with how many searches are calibrated.
	fitted, judged, asked = 2048, 64, 200
	// askedFew is asked for an index without a graph.
	askedFew = 100
	// nibblesKeep is the least share of the nearest by whole codes that must be among the nibblesAmong nearest by upper
	// nibbles; else walks compare whole codes.
	nibblesKeep, nibblesAmong = 0.97, 48
	// foreignGrowth bounds how much longer default searches take because of queries that are unlike all vectors.
	foreignGrowth = 8
	// hopeless is the deficit of a part of the sample above which the rest is not searched.
	hopeless = 0.03
	// amongShare is which share of the nearest are to be among those that are kept, amongWhole the same where walks compare whole
	// codes, so that those that are kept can be compared exactly only, and amongMost how many these may be.
	amongShare, amongWhole, amongMost = 0.99, 0.96, 256
	// tied is how many of the nearest an exact search for a probe finds besides: those that are as near as the last one count, too.
	tied = 2 * DefaultK
)

// wantDefault and wantThorough are the shares of the nearest that are to be found, for each kind of probes: for vectors of the
// index a little more than is promised of all. See inReach for lists.
var wantDefault, wantThorough = [kinds]float64{own: 0.97, foreign: 0.985}, [kinds]float64{own: 0.996, foreign: 0.998}

// efforts are how many candidates default and thorough searches follow, among how many of the best by their codes the
// nearest are, and which lists default and thorough searches look at; 0: those that ef says.
type efforts struct{ normal, thorough, among, reach, farReach int }

var leastEfforts = efforts{normal: DefaultEfSearch, thorough: DefaultEfThorough}

// sampleOf are about n of the numbers below all, at equal distances.
func sampleOf(all, n int) (sample []int) {
	n = min(n, all)
	for i := range n {
		sample = append(sample, i*all/n)
	}
	return sample
}

// judge decides whether walks compare whole codes. Rows are filled.
func (l *linker) judge() {
	v := l.v
	if v.live < fitFrom {
		return
	}
	alive := v.alive()
	sample := sampleOf(len(alive), judged)
	kept := make([]int, len(sample))
	const near = DefaultK + 1 // the vector itself is nearest
	l.parallel(len(sample), func(w *vectorWalker, i int) {
		code := w.take(v, alive[sample[i]])
		copy(w.query.code, code.code)
		w.query.sum, w.query.norm, w.query.ratio = code.sum, code.norm, code.ratio
		whole := slices.Clone(lowest(w.keysOf(v, true), near))
		for _, key := range lowest(w.keysOf(v, false), nibblesAmong) {
			if slices.ContainsFunc(whole, func(k uint64) bool { return uint32(k) == uint32(key) }) {
				kept[i]++
			}
		}
	})
	sum := 0
	for _, n := range kept {
		sum += n
	}
	c := *v.coder
	c.whole = float64(sum) < nibblesKeep*float64(min(near, len(alive))*len(sample))
	v.coder = &c
}

// probe is a query that searches are calibrated with, and from which similarity on others are among its DefaultK nearest.
type probe struct {
	kind  int
	slot  uint32 // of the vector that it is, or from which it was made
	unit  []float32
	limit float32
	most  int // how many of these there are at most
	// ranks are the places of the nearest, in the order of codes that walks compare; places where they are in lists.
	ranks  []int
	places []place
}

// The kinds of probes.
const (
	// own are vectors of the index.
	own = iota
	// foreign is a vector plus the differences of others: a query that is unlike all vectors, but not unlike their mean.
	foreign
	kinds
)

// calibrate chooses the efforts of default and thorough searches: the least that find enough of the nearest of some of the
// vectors. The result is the same on every machine. vector reads an exact vector, of length 1, into scratch if necessary.
func (l *linker) calibrate(vector func(slot uint32, scratch []float32) ([]float32, error)) error {
	v := l.v
	v.efforts = leastEfforts
	v.calibrated = v.live
	if v.live < fitFrom || v.dims < graphDims {
		return nil
	}
	for _, w := range l.walkers {
		buffer := make([]float32, v.dims)
		w.vector = func(slot uint32) []float32 {
			got, err := vector(slot, buffer)
			if err != nil {
				l.failed.Store(&err)
				clear(buffer)
				return buffer
			}
			return got
		}
		defer func() { w.vector = nil }()
	}
	probes := l.probes()
	v.efforts.among = among(probes, v.whole)
	if v.graph {
		v.efforts.normal = l.enough(probes, DefaultEfSearch, wantDefault)
		v.efforts.thorough = l.enough(probes, max(DefaultEfThorough, v.efforts.normal), wantThorough)
	} else {
		l.chooseReach(probes)
	}
	if failed := l.failed.Swap(nil); failed != nil {
		return *failed
	}
	return nil
}

// enough returns the least effort, from ef on, that finds enough. Foreign probes raise it at most foreignGrowth
// times.
func (l *linker) enough(probes []probe, ef int, want [kinds]float64) int {
	most := l.v.live
	for kind, want := range want {
		for ; ef < most && !l.stopped(); ef = harder(ef) {
			if l.share(probes, kind, ef, len(probes)/4) >= want-hopeless && l.share(probes, kind, ef, len(probes)) >= want {
				break
			}
		}
		most = min(most, foreignGrowth*ef)
	}
	return min(ef, most)
}

// harder is the next effort: half as many again, or a third, in turn.
func harder(ef int) int {
	if ef&(ef-1) == 0 {
		return ef + ef/2
	}
	return ef + ef/3
}

// probes are queries with their nearest, as exact searches find them.
func (l *linker) probes() []probe {
	v := l.v
	alive := v.alive()
	n := asked
	if !v.graph {
		n = askedFew
	}
	sample := sampleOf(len(alive), n)
	probes := make([]probe, kinds*len(sample))
	l.parallel(len(sample), func(w *vectorWalker, i int) {
		slot := alive[sample[i]]
		one := slices.Clone(w.vector(slot))
		other := slices.Clone(one)
		for k, sign := range []float32{1, -1, 1, -1} {
			for c, x := range w.vector(alive[sample[(i+(k+1)*len(sample)/5)%len(sample)]]) {
				other[c] += sign * x
			}
		}
		probes[kinds*i+own] = probe{kind: own, slot: slot, unit: one}
		probes[kinds*i+foreign] = probe{kind: foreign, slot: slot, unit: other}
	})
	l.parallel(len(probes), func(w *vectorWalker, i int) { w.findNearest(l.v, &probes[i]) })
	return probes
}

// findNearest finds the nearest vectors of a probe.
func (w *vectorWalker) findNearest(v *vectorView, p *probe) {
	if v.check(p.unit) != nil {
		return // nothing is left of equal vectors
	}
	w.ask(v, p, SearchOptions{Exact: true, K: DefaultK + 1 + tied})
	var near []uint32
	for _, h := range w.answers {
		if h.Slot != p.slot && (p.most < DefaultK || h.Similarity == p.limit) {
			p.most = min(p.most+1, DefaultK)
			p.limit = h.Similarity
			near = append(near, h.Slot)
		}
	}
	if p.kind == own {
		p.ranks = w.ranks(v, near)
		slices.Sort(p.ranks)
		p.ranks = p.ranks[:p.most]
	}
	if v.inLists() {
		w.locate(v, p, near)
	}
}

// ranks are the places that some slots have among all, by their distances from w.query as walks compare them: how many are
// nearer than each.
func (w *vectorWalker) ranks(v *vectorView, slots []uint32) []int {
	keys := w.keysOf(v, v.whole)
	dists, ranks := make([]uint64, len(slots)), make([]int, len(slots))
	for _, key := range keys {
		if i := slices.Index(slots, slotOf(key, 0)); i >= 0 {
			dists[i] = key >> distShift
		}
	}
	most := slices.Max(append(dists, 0))
	for _, key := range keys {
		if key>>distShift >= most {
			continue
		}
		for i, d := range dists {
			if key>>distShift < d {
				ranks[i]++
			}
		}
	}
	return ranks
}

// among is how many of the best by their codes have enough of the nearest among them.
func among(probes []probe, whole bool) int {
	var ranks []int
	for _, p := range probes {
		ranks = append(ranks, p.ranks...)
	}
	if len(ranks) == 0 {
		return 0
	}
	slices.Sort(ranks)
	share := amongShare
	if whole {
		share = amongWhole
	}
	return min(ranks[int(share*float64(len(ranks)-1))]+1, amongMost)
}

// ask leaves the nearest of a probe in w.answers. It does not follow links to and from the probe's slot, because most
// queries are not in the index.
func (w *vectorWalker) ask(v *vectorView, p *probe, o SearchOptions) {
	w.encodeProbe(v, p)
	if p.slot != v.entry {
		w.hidden = p.slot
	}
	w.find(v, o)
	w.hidden = noSlot
}

// encodeProbe sets w.query to that of a probe.
func (w *vectorWalker) encodeProbe(v *vectorView, p *probe) {
	v.encode(&w.query, p.unit, w.rotated)
	w.salt = 0
}

// share is what part of the nearest is found of the probes of a kind, among the first n of all.
func (l *linker) share(probes []probe, kind, ef, n int) float64 {
	found, all := make([]int, n), 0
	l.parallel(n, func(w *vectorWalker, i int) {
		p := &probes[i]
		if p.kind != kind || p.most == 0 {
			return
		}
		w.ask(l.v, p, SearchOptions{Ef: ef, K: DefaultK + 1})
		for _, h := range w.answers {
			if h.Slot != p.slot && h.Similarity >= p.limit && found[i] < p.most {
				found[i]++
			}
		}
	})
	sum := 0
	for i, n := range found {
		if probes[i].kind == kind {
			sum, all = sum+n, all+probes[i].most
		}
	}
	return float64(sum) / float64(max(1, all))
}

// recalibrate calibrates a view that is about to become the current one.
func (x *Index) recalibrate(v *vectorView) {
	x.changed = 0
	_ = x.linkerOf(v).calibrate(v.exact) // vectors in memory can always be read
}

// sampleOfSlots are about n of some slots.
func sampleOfSlots(slots []uint32, n int) (sample []uint32) {
	for _, i := range sampleOf(len(slots), n) {
		sample = append(sample, slots[i])
	}
	return sample
}

// locate sets where the nearest of a probe are, whose code is w.query: of slots that are equally near the first ones met.
func (w *vectorWalker) locate(v *vectorView, p *probe, near []uint32) {
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
