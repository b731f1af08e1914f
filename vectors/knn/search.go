package knn

import (
	"cmp"
	"fmt"
	"math"
	"sync"
	"sync/atomic"

	"reconcile.dev/reconcile/vectors/kernel"
)

// DefaultK is how many hits a search gives.
const DefaultK = 10

// SearchOptions say what a search looks for. The zero value asks for the DefaultK most similar vectors.
type SearchOptions struct {
	// K is the largest number of hits.
	K int
	// Ef is how many candidates a search follows. More find more and take longer. Those, and as many more as it takes for codes
	// to have the nearest among them, it compares by whole codes, and the best of these exactly. By default what Index.Efforts
	// says; at least K.
	Ef       int
	Thorough bool
	// Exact finds the K most similar vectors for certain.
	Exact bool
	// Filter has the slots that may be found; nil: all.
	Filter *Bitmap
	// MinSimilarity, unless 0, is the least similarity of hits.
	MinSimilarity float32
	// Into is used for the result if it has room for K hits: then a search does not allocate.
	Into []Hit
	// reach, unless 0, is which lists it looks at.
	reach int
}

// Hit is a vector that was found.
type Hit struct {
	Slot uint32
	ID   uint64
	// Similarity is the cosine of the angle to the query, -1 to 1.
	Similarity float32
}

// Numbers of the search, chosen by measurements on 768 dimensions.
const (
	// A filter that lets at most 1 in narrow vectors pass is searched by a scan of these; one that lets more than 1 in sparse pass, if by a
	// scan, by one of all.
	narrow, sparse = 10, 3
	// Of Ef candidates a scan keeps keptAll, and 1 in keptOf besides; of those that pass a filter keptPassing.
	keptAll, keptOf, keptPassing = 256, 8, 1024
	// A walk that keeps more than 1 in dense vectors would look at most of them, and a scan of all codes does it faster.
	dense = 40
	// fetched is how many bytes of each vector that is compared exactly next are fetched.
	fetched = 1024
)

// Search returns hits of the index: the vectors that are most similar to the query by cosine, the most similar first.
// The error describes an invalid query: errDims, errNotFinite, ErrZero.
func (x *Index) Search(query []float32, o SearchOptions) ([]Hit, error) {
	v, epoch := x.enter()
	defer x.readers.leave(epoch)
	if err := v.check(query); err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	o = x.complete(v, o)
	w := x.walkers.Get().(*vectorWalker)
	defer x.walkers.Put(w)
	v.encode(&w.query, query, w.rotated)
	w.salt = 0
	w.find(v, o)
	w.name(v)
	return append(o.Into[:0], w.answers...), nil
}

// SearchMany searches for each of the queries, by as many goroutines as Options.Threads, and returns their hits in the
// order of the queries. o.Into is not used. The error is that of the first query that is refused.
func (x *Index) SearchMany(queries [][]float32, o SearchOptions) ([][]Hit, error) {
	o.Into = nil
	found, wrong := make([][]Hit, len(queries)), make([]error, len(queries))
	var next atomic.Int64
	var all sync.WaitGroup
	for range min(x.options.Threads, len(queries)) {
		all.Go(func() {
			for i := int(next.Add(1)) - 1; i < len(queries); i = int(next.Add(1)) - 1 {
				found[i], wrong[i] = x.Search(queries[i], o)
			}
		})
	}
	all.Wait()
	for i, err := range wrong {
		if err != nil {
			return nil, fmt.Errorf("query %d of %d: %w", i+1, len(queries), err)
		}
	}
	return found, nil
}

// effort is how many candidates a search keeps; a thorough one keeps no fewer.
func (x *Index) effort(v *vectorView, thorough bool) int {
	normal := cmp.Or(x.options.EfSearch, v.efforts.normal)
	if thorough {
		return max(normal, cmp.Or(x.options.EfThorough, v.efforts.thorough))
	}
	return normal
}

// find leaves the hits for w.query in w.answers.
func (w *vectorWalker) find(v *vectorView, o SearchOptions) {
	w.answers = w.answers[:0]
	n := v.len()
	switch {
	case n == 0:
	case o.Exact || v.dims < graphDims:
		w.exact(v, o)
	case o.Filter != nil && o.Filter.Len() <= n/narrow:
		w.slots = o.Filter.appendTo(w.slots[:0], n)
		w.scanSlots(v, o)
	case !v.hasEntry() && (!v.inLists() || lookedAt*o.Ef >= v.live && o.reach == 0):
		w.scanCodes(v, o)
	case !v.hasEntry():
		w.scanLists(v, o)
	case o.Filter != nil:
		w.walkFiltered(v, o)
	case o.Ef > min(n, v.calibrated)/dense: // an effort that was enough since it made a scan makes one until another is chosen
		w.scanCodes(v, o)
	default:
		w.walk(v, &w.query, 0, o.Ef, v.efforts.among, alike(o), w.approach(v, &w.query, o.Ef)...)
		w.rerank(v, o, w.pool.keys)
	}
}

// passes reports whether a slot may be an answer.
func (o *SearchOptions) passes(v *vectorView, slot uint32) bool {
	return (o.Filter == nil || o.Filter.Has(slot)) && v.has(slot)
}

// rerank compares candidates by whole codes, the best of these exactly, and leaves the answers.
func (w *vectorWalker) rerank(v *vectorView, o SearchOptions, keys []uint64) {
	w.slots, w.ranked = w.slots[:0], w.ranked[:0]
	for _, key := range keys {
		if slot := slotOf(key, 0); o.passes(v, slot) {
			w.slots, w.ranked = append(w.slots, slot), append(w.ranked, key&^done)
		}
	}
	if !v.whole { // else keys have the distances of whole codes
		w.weigh(v, &w.query)
		for i, dist := range w.dists {
			w.ranked[i] = keyOf(dist, w.slots[i], 0)
		}
	}
	w.settleBest(v, o)
}

// settleBest compares w.ranked exactly, the K nearest first, except those that the errors of codes seen so far exclude from
// the K best.
func (w *vectorWalker) settleBest(v *vectorView, o SearchOptions) {
	head := min(max(o.K, 8), len(w.ranked))
	pick(w.ranked, head)
	e := estimate{least: math.MaxFloat32, most: -math.MaxFloat32}
	e.first, e.each = v.similarity(&w.query)
	e.noise = v.noise(&w.query)
	w.compare(v, o, w.ranked[:head], &e)
	for rest := w.ranked[head:]; len(rest) > 0; {
		n := len(rest)
		if len(w.answers) >= o.K {
			n = split(rest, e.limit(w.answers[o.K-1].Similarity))
		}
		if n == 0 {
			break
		}
		w.compare(v, o, rest[:n], &e)
		rest = rest[n:] // what codes are off now may say that more of them can be among the best
	}
}

// estimate says what a distance of codes tells about the similarity, first plus each times the distance, and how much the
// similarities of those compared so far were more, at least and at most.
type estimate struct {
	first, each float64
	noise       float64 // see coder.noise
	least, most float32
}

func (e *estimate) add(key uint64, similarity float32) {
	off := similarity - float32(e.first+float64(e.each*float64(distOf(key))))
	e.least, e.most = min(e.least, off), max(e.most, off)
}

// grain is by how much distances of codes, whole numbers, differ at least where they tell vectors apart: if a query is beyond what codes
// cover, those of a tight group may all be off by the same.
const grain = 8

// If those compared so far differ by fewer than alikeOff standard deviations in what their codes are off, they may be copies of a
// vector, and others differ by up to othersOff.
const alikeOff, othersOff = 2, 30

// limit is above the keys of those that may have this similarity or more.
func (e *estimate) limit(similarity float32) uint64 {
	spread := max(float64(e.most-e.least), -grain*e.each)
	if off := e.noise * math.Sqrt(2*max(0, 1-float64(similarity))); spread < alikeOff*off {
		spread = othersOff * off
	}
	dist := (float64(similarity-e.most) - spread - e.first) / e.each
	switch {
	case dist < -nearest:
		return 0
	case dist < math.MaxInt32-nearest:
		return keyOf(int32(math.Floor(dist))+1, 0, 0)
	}
	return math.MaxUint64 // of a damaged file it may be no number
}

// comparedAtOnce is how many vectors are compared exactly at the same time, while the next ones are fetched.
const comparedAtOnce = 4

// compare compares the query exactly with the vectors of some keys.
func (w *vectorWalker) compare(v *vectorView, o SearchOptions, keys []uint64, e *estimate) {
	var slots [comparedAtOnce]uint32
	var dots [comparedAtOnce]float32
	w.fetch(v, keys[:min(comparedAtOnce, len(keys))])
	for len(keys) > 0 {
		n := min(comparedAtOnce, len(keys))
		w.fetch(v, keys[n:min(n+comparedAtOnce, len(keys))])
		for i, key := range keys[:n] {
			slots[i] = slotOf(key, 0)
		}
		w.dotsOf(v, slots[:n], dots[:n])
		for i, key := range keys[:n] {
			similarity := clamp(dots[i])
			e.add(key, similarity)
			w.answer(v, o, slots[i], similarity)
		}
		keys = keys[n:]
	}
}

// fetch has the exact vectors of some candidates fetched, as far as a processor does not foresee it.
func (w *vectorWalker) fetch(v *vectorView, keys []uint64) {
	if w.vector != nil {
		return
	}
	for _, key := range keys {
		vector := v.vector(slotOf(key, 0))
		kernel.Prefetch(vector[:min(len(vector), fetched/4)])
	}
}

// name sets the IDs of the answers.
func (w *vectorWalker) name(v *vectorView) {
	for i := range w.answers {
		w.answers[i].ID = v.id(w.answers[i].Slot)
	}
}

// clamp is an inner product of vectors of length 1 without what rounding added.
func clamp(dot float32) float32 { return min(1, max(-1, dot)) }

// answer puts a slot in its place among the answers, without its ID, if it is similar enough.
func (w *vectorWalker) answer(v *vectorView, o SearchOptions, slot uint32, similarity float32) {
	if n := len(w.answers); n >= o.K && similarity < w.answers[n-1].Similarity {
		return
	}
	if o.MinSimilarity == 0 || similarity >= o.MinSimilarity {
		w.answers = append(w.answers, Hit{Slot: slot, Similarity: similarity})
		w.settle(v, o)
	}
}

// answerExactly does so with a slot that was not compared yet.
func (w *vectorWalker) answerExactly(v *vectorView, o SearchOptions, slot uint32) {
	var dot [1]float32
	w.dotsOf(v, []uint32{slot}, dot[:])
	w.answer(v, o, slot, clamp(dot[0]))
}

// exact finds the K best for certain: a code says how similar a vector is at most, and vectors are compared in that order
// until none that is left can be better than the K found. Which can be is known once the K best by codes are compared.
func (w *vectorWalker) exact(v *vectorView, o SearchOptions) {
	w.best.reset(o.K)
	w.found = w.found[:0]
	v.spans(func(s span) {
		w.scanSpan(v, &w.query, s, true)
		for i, dot := range w.dists {
			if slot := s.slot + uint32(i); o.passes(v, slot) {
				key := keyOf(far(s.s.norms[s.from+i], dot, w.query.ratio), slot, 0)
				w.found = append(w.found, key)
				w.best.offer(key)
			}
		}
	})
	for _, key := range w.best.kept() {
		w.answerExactly(v, o, slotOf(key, 0))
	}
	w.bounds(v, o)
	w.answers = w.answers[:0]
	heapify(w.bound)
	for len(w.bound) > 0 {
		top := w.bound[0]
		if len(w.answers) >= o.K && top.similarity < w.answers[o.K-1].Similarity ||
			o.MinSimilarity != 0 && top.similarity < o.MinSimilarity {
			break
		}
		w.bound = popBound(w.bound)
		w.answerExactly(v, o, top.slot)
	}
}

// settle moves the last answer to its place, and keeps K.
func (w *vectorWalker) settle(v *vectorView, o SearchOptions) {
	a := w.answers
	for i := len(a) - 1; i > 0 && before(v, a[i], a[i-1]); i-- {
		a[i], a[i-1] = a[i-1], a[i]
	}
	w.answers = a[:min(len(a), o.K)]
}

// before reports whether a hit comes before another: it is more similar, or has the lower ID. Hits have no IDs yet.
func before(v *vectorView, a, b Hit) bool {
	return a.Similarity > b.Similarity || a.Similarity == b.Similarity && v.id(a.Slot) < v.id(b.Slot)
}

// bounds sets w.bound for the slots in w.found that may be among the K best, as w.answers are. Two unit vectors at distance
// d have a similarity of 1-d*d/2, and d is at least the distance of their decoded codes less the distances of the vectors
// from their codes.
func (w *vectorWalker) bounds(v *vectorView, o SearchOptions) {
	w.bound = w.bound[:0]
	slack := v.distance(w.rotated, &w.query)
	limit := uint64(math.MaxUint64)
	if len(w.answers) >= o.K {
		limit = v.farthest(&w.query, w.answers[o.K-1].Similarity, slack)
	}
	for _, key := range w.found {
		if key <= limit {
			s, row := v.at(slotOf(key, 0))
			apart := math.Sqrt(max(0, v.apart(&w.query, distOf(key))))
			least := max(0, float32(apart)-slack-s.slacks[row])
			w.bound = append(w.bound, bound{1 - least*least/2 + rounding, slotOf(key, 0)})
		}
	}
}

// popBound removes the first of a heap.
func popBound(b []bound) []bound {
	b[0] = b[len(b)-1]
	b = b[:len(b)-1]
	if len(b) > 0 {
		sift(b, 0)
	}
	return b
}

// approach returns the start of a search that follows the ef best at the lowest level: the best that a walk of the level
// above keeps. If vectors are in many tight groups, the nearest one at the end of a greedy descent may be in another group,
// without a link from there to the right one.
func (w *vectorWalker) approach(v *vectorView, q *coded, ef int) []uint64 {
	if v.top == 0 {
		w.starts = append(w.starts[:0], w.descend(v, q, 0))
		return w.starts
	}
	beam := min(max(leastBeam, ef/beamShare), mostBeam)
	w.walk(v, q, 1, beam, 0, beam, w.descend(v, q, 1))
	w.starts = append(w.starts[:0], w.pool.keys...)
	return w.starts
}
