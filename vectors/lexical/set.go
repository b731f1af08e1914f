package lexical

import (
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"unicode/utf8"
)

// Bitmap is a set of small numbers; the zero value is empty.
type Bitmap []uint64

// Add adds n, which is not negative.
func (b *Bitmap) Add(n int) {
	for n>>6 >= len(*b) {
		*b = append(*b, 0)
	}
	(*b)[n>>6] |= 1 << (n & 63)
}

// Has reports whether the bitmap has the bit n.
func (b Bitmap) Has(n int) bool { return n>>6 < len(b) && b[n>>6]&(1<<(n&63)) != 0 }

// Segment is an index and the set of its deleted documents.
type Segment struct {
	Index   *Index
	Deleted Bitmap
}

// Set searches segments as if they were one index. The documents are numbered through the segments, deleted ones too.
// It never changes, and is safe for concurrent use.
type Set struct {
	segments []segment
	docs     int
	live     uint64 // documents that are not deleted
	length   uint64 // sum of their lengths
	weights  *impacts
	queries  sync.Pool // of *query
}

type segment struct {
	Segment
	base    int      // number of the first document
	deleted []uint32 // ascending
	// lost has for each term how many of its documents are deleted, plus one; 0 before anybody asked.
	lost []atomic.Uint32
	// stretch is the factor that raises the highest weights of windows to the set's average length.
	stretch float64
}

// NewSet makes a set of segments. The error is ErrDamaged, if any.
func NewSet(segments ...Segment) (*Set, error) {
	s := &Set{}
	for _, part := range segments {
		seg := segment{Segment: part, base: s.docs}
		if err := s.count(&seg); err != nil {
			return nil, err
		}
		if len(seg.deleted) > 0 {
			seg.lost = make([]atomic.Uint32, part.Index.terms)
		}
		s.segments = append(s.segments, seg)
		s.docs += part.Index.Docs()
	}
	if s.length > maxTotal {
		return nil, fmt.Errorf("%w: it cannot be so long", ErrDamaged)
	}
	s.weights = newImpacts(max(1, s.live), max(1, s.length))
	for i := range s.segments {
		s.segments[i].stretch = s.stretch(s.segments[i].Index)
	}
	return s, nil
}

// count adds the live documents of a segment to the sums.
func (s *Set) count(seg *segment) error {
	x := seg.Index
	s.live += uint64(x.docs)
	s.length += x.length
	for i, word := range seg.Deleted {
		for ; word != 0; word &= word - 1 {
			doc := uint32(i<<6 + bits.TrailingZeros64(word))
			if doc >= x.docs {
				break
			}
			class, ok := x.lengthClass(doc)
			if length := uint64(lengthOf(class)); !ok || length > s.length {
				return ErrDamaged
			} else {
				s.length -= length
			}
			s.live--
			seg.deleted = append(seg.deleted, doc)
		}
	}
	return nil
}

// live returns the number of documents of a list that are not deleted. Counting takes as long as reading the list, so
// the result is cached.
func (seg *segment) live(l *list) int {
	if len(seg.deleted) == 0 || l.df == 0 {
		return l.df
	}
	lost := seg.lost[l.term].Load()
	if lost == 0 {
		lost = uint32(l.count(seg.Deleted)) + 1
		seg.lost[l.term].Store(lost)
	}
	return l.df - int(lost-1)
}

// stretch returns the factor: the weight of an occurrence falls with the average length, but less than in proportion.
// Values that were rounded down may have been up to one larger.
func (s *Set) stretch(x *Index) float64 {
	average := float64(max(1, s.length)) / float64(max(1, s.live))
	reference := float64(x.refLength) / float64(x.refDocs)
	if average == reference {
		return 1
	}
	return max(1, average/reference) * (boundUnit + 2) / boundUnit
}

// Overlap counts for each document how many different terms of a query its title has. counts has an element for each
// document of the segments, 0 for deleted ones; total is the number of terms of the query; any is the set of documents
// that have any of them, in title or body, possibly deleted; terms of one character are not counted. The error is
// ErrDamaged, if any.
func (s *Set) Overlap(query string) (counts []uint16, total int, any Bitmap, err error) {
	q := s.query(query)
	defer s.queries.Put(q)
	counts, any = make([]uint16, s.docs), make(Bitmap, s.docs>>6+1)
	total = min(len(q.terms.ends), 1<<16-1)
	for term := range total {
		for i := range s.segments {
			seg := &s.segments[i]
			l, ok := seg.Index.lookUp(q.terms.hashes[term], q.terms.text(uint32(term)))
			if !ok {
				return nil, 0, nil, ErrDamaged
			}
			countTitles(&l, counts[seg.base:seg.base+seg.Index.Docs()])
			if utf8.RuneCount(q.terms.text(uint32(term))) > 1 {
				l.each(func(doc uint32, _ uint8) {
					if int(doc) < seg.Index.Docs() {
						any.Add(seg.base + int(doc))
					}
				})
			}
		}
	}
	for i := range s.segments {
		for _, doc := range s.segments[i].deleted {
			counts[s.segments[i].base+int(doc)] = 0
		}
	}
	return counts, total, any, nil
}

// HaveAll is the set of documents that have all terms of a query, in title or body, possibly deleted; empty for a query without
// terms. The error is ErrDamaged, if any.
func (s *Set) HaveAll(query string) (all Bitmap, err error) {
	q := s.query(query)
	defer s.queries.Put(q)
	for term := range q.terms.ends {
		have := make(Bitmap, s.docs>>6+1)
		for i := range s.segments {
			seg := &s.segments[i]
			l, ok := seg.Index.lookUp(q.terms.hashes[term], q.terms.text(uint32(term)))
			if !ok {
				return nil, ErrDamaged
			}
			l.each(func(doc uint32, _ uint8) {
				if at := seg.base + int(doc); int(doc) < seg.Index.Docs() && (term == 0 || all.Has(at)) {
					have.Add(at)
				}
			})
		}
		all = have
	}
	return all, nil
}

// countTitles counts the postings of terms in titles.
func countTitles(l *list, counts []uint16) {
	l.each(func(doc uint32, count uint8) {
		if count&(titleBit>>tfShift) != 0 && int(doc) < len(counts) {
			counts[doc]++
		}
	})
}
