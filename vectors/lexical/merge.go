package lexical

import (
	"bytes"
)

// Merge merges the live documents of the segments into one index, with the same bytes as building it from these
// documents. The error is ErrDamaged or ErrTooMany, if any.
func Merge(segments ...Segment) (*Index, error) {
	m := newMerger(segments)
	for _, s := range segments {
		if err := m.addDocs(s); err != nil {
			return nil, err
		}
	}
	if len(m.lengths) > MaxDocuments {
		return nil, ErrTooMany
	}
	for {
		term, at, ok := m.next()
		if !ok {
			return nil, ErrDamaged
		}
		if len(at) == 0 {
			break
		}
		if !m.addTerm(term, at) {
			return nil, ErrDamaged
		}
	}
	text := func(i int) []byte { return m.texts[i] }
	return layOut(m.lengths, m.keys, len(m.texts), text, m.starts, m.postings), nil
}

// merger collects the live documents of several indexes.
type merger struct {
	parts    []part
	at       []*part // those that have the term
	lengths  []byte
	keys     []uint64
	texts    [][]byte
	starts   []uint32
	postings []uint32
	// The numbers of postings, and of bytes of texts, that the headers of the segments leave room for: in a damaged file
	// the lists may overlap.
	postingsLeft, textLeft int
}

// newMerger makes room for all that the segments have: growing it bit by bit would take twice as much.
func newMerger(segments []Segment) *merger {
	docs, terms, postings, text := 0, uint32(0), 0, 0
	for _, s := range segments {
		docs += s.Index.Docs()
		terms = max(terms, s.Index.terms)
		postings += int(s.Index.postings)
		text += int(s.Index.header.text)
	}
	return &merger{
		lengths: make([]byte, 0, docs), keys: make([]uint64, 0, docs), texts: make([][]byte, 0, terms),
		starts: append(make([]uint32, 0, terms+1), 0), postings: make([]uint32, 0, postings),
		postingsLeft: postings, textLeft: text,
	}
}

// part is a segment that is being read, term by term.
type part struct {
	index *Index
	next  uint32 // number of the next term
	// renumbered has the new number of each document; gone for deleted ones.
	renumbered []uint32
}

const gone = 1<<32 - 1

// addDocs adds the documents of a segment that are left.
func (m *merger) addDocs(s Segment) error {
	p := part{index: s.Index, renumbered: make([]uint32, s.Index.docs)}
	for doc := range s.Index.docs {
		if s.Deleted.Has(int(doc)) {
			p.renumbered[doc] = gone
			continue
		}
		class, ok := s.Index.lengthClass(doc)
		key, ok2 := s.Index.key(doc)
		if !ok || !ok2 {
			return ErrDamaged
		}
		p.renumbered[doc] = uint32(len(m.lengths))
		m.lengths, m.keys = append(m.lengths, class), append(m.keys, key)
	}
	m.parts = append(m.parts, p)
	return nil
}

// next finds the next term in the order of texts and the parts that have it; none at the end. ok is false for damage.
func (m *merger) next() (term []byte, at []*part, ok bool) {
	at = m.at[:0]
	for i := range m.parts {
		p := &m.parts[i]
		if p.next == p.index.terms {
			continue
		}
		text, ok := p.index.text(p.next)
		if !ok {
			return nil, nil, false
		}
		switch c := bytes.Compare(text, term); {
		case len(at) == 0 || c < 0:
			term, at = text, append(at[:0], p)
		case c == 0:
			at = append(at, p)
		}
	}
	m.at = at
	return term, at, true
}

// addTerm adds the postings of a term, and the term if any of them is left.
func (m *merger) addTerm(term []byte, at []*part) bool {
	before := len(m.postings)
	for _, p := range at {
		l, ok := p.index.list(p.next)
		m.postingsLeft -= l.df
		m.textLeft -= len(term)
		if !ok || m.postingsLeft < 0 || m.textLeft < 0 {
			return false
		}
		p.next++
		l.each(func(doc uint32, count uint8) {
			if int(doc) >= len(p.renumbered) {
				ok = false
			} else if doc = p.renumbered[doc]; doc != gone {
				m.postings = append(m.postings, doc<<docShift|uint32(count)<<tfShift|uint32(m.lengths[doc]))
			}
		})
		if !ok {
			return false
		}
	}
	if len(m.postings) > before {
		m.texts = append(m.texts, term)
		m.starts = append(m.starts, uint32(len(m.postings)))
	}
	return true
}
