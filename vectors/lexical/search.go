package lexical

import (
	"cmp"
	"slices"
)

// Hit is a document that was found.
type Hit struct {
	Doc   int // its number in the set
	Score float32
}

// maxQuery is the maximum number of terms of a query that are searched. The sum of that many scores fits into 32
// bits.
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
	group  windowGroup
	// touched keeps the compiler from removing the prefetch.
	touched byte
}

// wanted is a term of the query.
type wanted struct {
	lists []list // for each segment
	idf   uint32
	df    int
}

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

// lookUp finds the lists of all terms, and drops terms that no document has.
func (q *query) lookUp() bool {
	all := q.found[:0]
	for i := range q.set.segments {
		q.touched += q.set.segments[i].Index.touch(q.terms.hashes)
	}
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
			w.df += seg.live(&l)
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

// scan searches a segment, one window group after the other. It returns false for damage.
func (q *query) scan(i int, accept func(int) bool) bool {
	seg := &q.set.segments[i]
	lengths, ok := seg.Index.lengths.Rows(1, 0, seg.Index.Docs())
	if !ok {
		return false
	}
	t := &q.group
	t.begin(q.found, i, seg.stretch)
	v := visit{windowGroup: t, segment: seg, best: &q.best, accept: accept}
	for first := 0; first < seg.Index.windows(); first += groupWindows {
		ok := t.enter(first, lengths, q.set.weights)
		v.offerAccumulated()
		v.walk()
		if !ok || v.damaged {
			return false
		}
	}
	return true
}
