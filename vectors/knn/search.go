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
	// A filter that lets less than 1 in narrow vectors pass is searched by a scan of these.
	narrow = 10
	// Of Ef candidates a scan keeps keptAll, and 1 in keptOf besides.
	keptAll, keptOf = 256, 8
	// A walk that keeps more than 1 in dense vectors would look at most of them, and a scan of all codes does it faster.
	dense = 40
	// fetched is how many bytes of the vectors that are compared exactly next are fetched.
	fetched = 4096
)

// Search returns hits of the index: the vectors that are most similar to the query by cosine, the most similar first.
// The error describes an invalid query: ErrDims, ErrNotFinite, ErrZero.
func (x *Index) Search(query []float32, o SearchOptions) ([]Hit, error) {
	v, epoch := x.enter()
	defer x.readers.leave(epoch)
	if err := v.check(query); err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	o = x.complete(v, o)
	w := x.walkers.Get().(*walker)
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

// complete fills in the defaults.
func (x *Index) complete(v *view, o SearchOptions) SearchOptions {
	if o.K <= 0 {
		o.K = DefaultK
	}
	if o.Ef <= 0 {
		o.Ef = x.effort(v, o.Thorough)
		o.reach = x.reach(v, o)
	}
	o.K = min(o.K, max(1, v.len()))
	o.Ef = min(max(o.Ef, o.K), max(1, v.len()))
	return o
}

// effort is how many candidates a search keeps; a thorough one keeps no fewer.
func (x *Index) effort(v *view, thorough bool) int {
	normal := cmp.Or(x.options.EfSearch, v.efforts.normal)
	if thorough {
		return max(normal, cmp.Or(x.options.EfThorough, v.efforts.thorough))
	}
	return normal
}

// reach is that of a search which leaves the effort to the index. What few pass, and more than were calibrated for, is farther away.
func (x *Index) reach(v *view, o SearchOptions) int {
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

// find leaves the hits for w.query in w.answers.
func (w *walker) find(v *view, o SearchOptions) {
	w.answers = w.answers[:0]
	n := v.len()
	switch {
	case n == 0:
	case o.Exact || v.dims < graphDims:
		w.exact(v, o)
	case o.Filter != nil && o.Filter.Len() < n/narrow:
		w.slots = o.Filter.appendTo(w.slots[:0], n)
		w.scanSlots(v, o)
	case !v.hasEntry() && (!v.inLists() || lookedAt*o.Ef >= v.live && o.reach == 0):
		w.scanCodes(v, o)
	case !v.hasEntry():
		w.scanLists(v, o)
	case o.Filter != nil:
		w.walkFiltered(v, o)
	case o.Ef > n/dense:
		w.scanCodes(v, o)
	default:
		w.walk(v, &w.query, 0, o.Ef, v.efforts.among, alike(o), w.approach(v, &w.query, o.Ef)...)
		w.rerank(v, o, w.pool.keys)
	}
}

// alike is how many equal candidates a walk keeps at least.
func alike(o SearchOptions) int { return max(16, o.K) }

// passes reports whether a slot may be an answer.
func (o *SearchOptions) passes(v *view, slot uint32) bool {
	return (o.Filter == nil || o.Filter.Has(slot)) && v.has(slot)
}

// rerank compares candidates by whole codes, the best of these exactly, and leaves the answers.
func (w *walker) rerank(v *view, o SearchOptions, keys []uint64) {
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
func (w *walker) settleBest(v *view, o SearchOptions) {
	head := min(max(o.K, 8), len(w.ranked))
	pick(w.ranked, head)
	first, each := v.similarity(&w.query)
	least, most := float32(math.MaxFloat32), float32(-math.MaxFloat32) // that codes were off
	about := func(key uint64) float32 { return float32(first + float64(each*float64(distOf(key)))) }
	compare := func(keys []uint64) {
		ahead := max(1, fetched/(4*v.dims))
		for i := range min(ahead, len(keys)) {
			w.fetch(v, keys[i])
		}
		for i, key := range keys {
			if i+ahead < len(keys) {
				w.fetch(v, keys[i+ahead])
			}
			off := w.answer(v, o, slotOf(key, 0)) - about(key)
			least, most = min(least, off), max(most, off)
			w.settle(v, o)
		}
	}
	compare(w.ranked[:head])
	for rest := w.ranked[head:]; len(rest) > 0; {
		worst := float32(-math.MaxFloat32)
		if len(w.answers) >= o.K {
			worst = w.answers[o.K-1].Similarity - most - (most - least)
		}
		n := 0
		for i, key := range rest {
			if about(key) >= worst {
				rest[i], rest[n] = rest[n], key
				n++
			}
		}
		if n == 0 {
			break
		}
		compare(rest[:n])
		rest = rest[n:] // what codes are off now may say that more of them can be among the best
	}
}

// fetch has the exact vector of a candidate fetched.
func (w *walker) fetch(v *view, key uint64) {
	if w.vector == nil {
		kernel.Prefetch(v.vector(slotOf(key, 0)))
	}
}

// name sets the IDs of the answers.
func (w *walker) name(v *view) {
	for i := range w.answers {
		w.answers[i].ID = v.id(w.answers[i].Slot)
	}
}

// answer adds a slot to the answers, without its ID, if it is similar enough, and returns how similar it is.
func (w *walker) answer(v *view, o SearchOptions, slot uint32) float32 {
	var dot float32
	if w.vector == nil {
		dot = kernel.Dot(w.query.unit, v.vector(slot))
	} else {
		dot = float32(kernel.StableDot(w.query.unit, w.vector(slot)))
	}
	similarity := min(1, max(-1, dot))
	if n := len(w.answers); n >= o.K && similarity < w.answers[n-1].Similarity {
		return similarity
	}
	if o.MinSimilarity == 0 || similarity >= o.MinSimilarity {
		w.answers = append(w.answers, Hit{Slot: slot, Similarity: similarity})
	}
	return similarity
}

// walkFiltered walks until the best that pass are nearer than all candidates left. If it meets so few that a scan of
// those that pass is cheaper, it does that instead.
func (w *walker) walkFiltered(v *view, o SearchOptions) {
	code, p := &w.query, &w.pool
	budget := o.Filter.Len()
	w.forget(v.len())
	p.reset(max(4*o.Ef, o.Ef*v.len()/o.Filter.Len()*2), alike(o))
	w.hits.reset(o.Ef, o.Ef)
	start := w.descend(v, code, 0)
	w.see(slotOf(start, 0))
	w.consider(v, o, start)
	for next := 0; next < len(p.keys) && p.keys[next] < w.hits.worst(); {
		key := p.keys[next]
		if key&done != 0 {
			next++
			continue
		}
		p.keys[next] |= done
		w.slots = w.slots[:0]
		w.enter(v, v.links(slotOf(key, 0), 0))
		w.measure(v, code)
		if budget -= len(w.slots); budget < 0 {
			w.slots = o.Filter.appendTo(w.slots[:0], v.len())
			w.scanSlots(v, o)
			return
		}
		next++
		for i, dist := range w.dists {
			next = min(next, w.consider(v, o, keyOf(dist, w.slots[i], 0)))
		}
	}
	w.rerank(v, o, w.hits.keys)
}

// consider adds a candidate to the pool, and to the hits if it passes. It returns its place.
func (w *walker) consider(v *view, o SearchOptions, key uint64) int {
	if key >= w.hits.worst() {
		return len(w.pool.keys)
	}
	if o.passes(v, slotOf(key, 0)) {
		w.hits.add(key)
	}
	return w.pool.add(key)
}
