package lexical

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"
)

// Hit is a document that was found.
type Hit struct {
	Doc   int // its number in the set
	Score float32
}

// maxQuery is how many terms of a query are searched for. The sum of so many scores fits into 32 bits.
const maxQuery = 1024

// Search finds the limit best documents that have a term of the query and are accepted, best first. accept nil accepts
// all; otherwise it is asked only of documents that would be among the best so far. Of a query with more than maxQuery
// terms the rarest count. The error is ErrDamaged, if any.
func (s *Set) Search(text string, limit int, accept func(doc int) bool) ([]Hit, error) {
	if limit <= 0 || s.live == 0 {
		return nil, nil
	}
	q := s.query(text)
	defer s.queries.Put(q)
	if !q.lookUp() {
		return nil, ErrDamaged
	}
	q.best.reset(min(limit, s.docs))
	for i := range s.segments {
		if !q.scan(i, accept) {
			return nil, ErrDamaged
		}
	}
	return q.best.hits(), nil
}

// query is a search that is under way. It is used again for the next one.
type query struct {
	set    *Set
	cutter cutter
	terms  vocabulary
	found  []wanted
	best   best
	// For each window of a segment, the highest possible score; and the windows, highest first.
	upper []uint32
	order windowOrder
	// The terms that have something in the window, and in rest[i] the sum of the highest scores of active[:i].
	active []active
	rest   []uint32
	sums   [windowSize]uint32
}

// wanted is a term of the query.
type wanted struct {
	lists []list // for each segment
	idf   uint32
	df    int
	// Of the segment that is being searched:
	unit  uint32 // the score of a boundUnit of the directory
	spans []span // for each window, if there is no directory
}

// span is where the postings of a window are in a list, and their highest score.
type span struct{ from, to, highest uint32 }

// query cuts the text.
func (s *Set) query(text string) *query {
	q, _ := s.queries.Get().(*query)
	if q == nil {
		q = &query{set: s, terms: newVocabulary(64)}
	}
	q.terms.reset()
	q.cutter.cut(text, func(term []byte) { q.terms.number(term) })
	return q
}

// reset forgets all terms.
func (v *vocabulary) reset() {
	v.texts, v.ends, v.hashes = v.texts[:0], v.ends[:0], v.hashes[:0]
	clear(v.slots)
}

// lookUp finds the lists of all terms, and drops terms that no document has.
func (q *query) lookUp() bool {
	all := q.found[:0]
	for term := range q.terms.ends {
		all = slices.Grow(all, 1)[:len(all)+1]
		w := &all[len(all)-1]
		w.lists, w.df = w.lists[:0], 0
		for i := range q.set.segments {
			seg := &q.set.segments[i]
			l, ok := seg.Index.lookUp(q.terms.hashes[term], q.terms.text(uint32(term)))
			if !ok {
				return false
			}
			w.lists = append(w.lists, l)
			w.df += seg.left(&l)
		}
		if w.df <= 0 {
			all = all[:len(all)-1]
			continue
		}
		w.idf = idf(q.set.live, w.df)
	}
	// The most frequent terms first: they are the ones to look up last.
	slices.SortStableFunc(all, func(a, b wanted) int { return cmp.Compare(b.df, a.df) })
	q.found = all[max(0, len(all)-maxQuery):]
	return true
}

// scan searches a segment: its windows from the most promising one on, until none can have anything better than what
// was found. It is false for damage.
func (q *query) scan(i int, accept func(int) bool) bool {
	seg := &q.set.segments[i]
	q.bound(i)
	q.order.sort(q.upper)
	v := visit{query: q, segment: seg, accept: accept}
	for _, w := range q.order.windows {
		if q.upper[w] < q.best.least {
			continue
		}
		q.activate(i, int(w))
		if v.window(int(w)); v.damaged {
			return false
		}
	}
	return true
}

// bound computes the highest possible score of each window of a segment.
func (q *query) bound(i int) {
	seg := &q.set.segments[i]
	windows := seg.Index.windows()
	q.upper = slices.Grow(q.upper[:0], windows)[:windows]
	clear(q.upper)
	for t := range q.found {
		w := &q.found[t]
		l := &w.lists[i]
		if l.begins == nil {
			w.span(l, q.set.weights, q.upper)
			continue
		}
		w.unit = boundWeight(w.idf, seg.stretch)
		for i, h := range l.highest[:len(q.upper)] {
			q.upper[i] += uint32(h) * w.unit
		}
	}
}

// boundWeight is the score of a boundUnit of a term, rounded up.
func boundWeight(idf uint32, stretch float64) uint32 {
	return uint32(math.Ceil(float64(idf) * boundUnit * stretch / (1 << scoreShift)))
}

// span finds the spans of a list without a directory, and adds the highest scores to upper. Documents of windows that
// do not exist, in a damaged index, are left out.
func (w *wanted) span(l *list, weights *impacts, upper []uint32) {
	w.spans = slices.Grow(w.spans[:0], len(upper))[:len(upper)]
	clear(w.spans)
	for i, n := 0, l.len(); i < n; {
		at, from, most := int(l.posting(i)>>(docShift+windowShift)), i, uint32(0)
		for ; i < n && int(l.posting(i)>>(docShift+windowShift)) == at; i++ {
			most = max(most, weights.score(l.posting(i), w.idf))
		}
		if at < len(upper) {
			w.spans[at] = span{uint32(from), uint32(i), most}
			upper[at] += most
		}
	}
}

// score is what a posting adds to the score of its document.
func (w *impacts) score(posting, idf uint32) uint32 {
	return uint32(w[posting&impactMask]) * idf >> scoreShift
}

// active is a term's part of a window.
type active struct {
	postings []byte
	idf      uint32
}

// activate lists the terms that have something in a window.
func (q *query) activate(i, w int) {
	q.active, q.rest = q.active[:0], append(q.rest[:0], 0)
	sum := uint32(0)
	for t := range q.found {
		want := &q.found[t]
		l := &want.lists[i]
		var s span
		if l.begins == nil {
			s = want.spans[w]
		} else if h := l.highest[w]; h > 0 {
			s = l.span(w, uint32(h)*want.unit)
		}
		if s.highest > 0 {
			sum += s.highest
			q.active = append(q.active, active{l.postings[s.from*postingSize : s.to*postingSize], want.idf})
			q.rest = append(q.rest, sum)
		}
	}
}

// visit goes through the windows of a segment.
type visit struct {
	*query
	*segment
	accept  func(int) bool
	damaged bool
}

// window offers the documents of a window. Terms that cannot lift a document to the best all together are looked up
// only for the documents that the other terms, from split on, have brought near them (MaxScore: Turtle and Flood,
// "Query evaluation: strategies and optimizations", 1995). What they have to bring is at least 1, since rest[split] is
// below least, which never falls.
func (v *visit) window(w int) {
	split := 0
	for split < len(v.active) && v.rest[split+1] < v.best.least {
		split++
	}
	base := uint32(w) << windowShift
	if split == len(v.active)-1 {
		v.stream(&v.active[split], split, base)
		return
	}
	v.gather(split)
	sums, need := &v.sums, v.best.least-v.rest[split]
	for i := split; i < len(v.active); i++ {
		for p := v.active[i].postings; len(p) >= postingSize; p = p[postingSize:] {
			at := binary.LittleEndian.Uint32(p) >> docShift & (windowSize - 1)
			sum := sums[at]
			sums[at] = 0
			if sum >= need {
				v.offer(base|at, sum, split)
				need = v.best.least - v.rest[split]
			}
		}
	}
}

// stream offers the documents of one term.
func (v *visit) stream(a *active, split int, base uint32) {
	weights, need := v.set.weights, v.best.least-v.rest[split]
	for p := a.postings; len(p) >= postingSize; p = p[postingSize:] {
		posting := binary.LittleEndian.Uint32(p)
		if sum := weights.score(posting, a.idf); sum >= need {
			v.offer(base|posting>>docShift&(windowSize-1), sum, split)
			need = v.best.least - v.rest[split]
		}
	}
}

// gather adds the scores of the terms from split on up in sums.
func (v *visit) gather(split int) {
	weights, sums := v.set.weights, &v.sums
	for i := split; i < len(v.active); i++ {
		idf := v.active[i].idf
		for p := v.active[i].postings; len(p) >= postingSize; p = p[postingSize:] {
			posting := binary.LittleEndian.Uint32(p)
			sums[posting>>docShift&(windowSize-1)] += weights.score(posting, idf)
		}
	}
}

// offer adds the scores of the first terms to that of a document, and puts it among the best if it belongs there.
func (v *visit) offer(doc, sum uint32, terms int) {
	for i := terms - 1; i >= 0; i-- {
		if sum+v.rest[i+1] < v.best.least {
			return
		}
		sum += v.active[i].scoreOf(doc, v.set.weights)
	}
	if sum < v.best.least || doc >= v.Index.docs || v.Deleted.Has(int(doc)) {
		return
	}
	key, ok := v.Index.key(doc)
	if !ok {
		v.damaged = true
		return
	}
	c := candidate{sum, key, v.base + int(doc)}
	if v.best.wants(c) && (v.accept == nil || v.accept(c.doc)) {
		v.best.push(c)
	}
}

// scoreOf is what the term adds to the score of a document. Documents lie evenly enough in a window that the place of
// one is guessed within a few steps.
func (a *active) scoreOf(doc uint32, weights *impacts) uint32 {
	p, first := a.postings, doc<<docShift // no posting of the document is below it
	n := len(p) / postingSize
	at := int(doc&(windowSize-1)) * n >> windowShift
	for at > 0 && binary.LittleEndian.Uint32(p[at*postingSize:])>>docShift > doc {
		at--
	}
	for at < n && binary.LittleEndian.Uint32(p[at*postingSize:]) < first {
		at++
	}
	if at < n {
		if posting := binary.LittleEndian.Uint32(p[at*postingSize:]); posting>>docShift == doc {
			return weights.score(posting, a.idf)
		}
	}
	return 0
}
