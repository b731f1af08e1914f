package lexical

import (
	"cmp"
	"math"
	"slices"
)

const TitleWeight = titleWeight

// Docs is how many documents the segments have, deleted ones too.
func (s *Set) Docs() int { return s.docs }

// Live is how many documents can be found.
func (s *Set) Live() int { return int(s.live) }

// RoundedLength is the length that is kept for a length.
func RoundedLength(n int) int { return lengthOf(lengthClass(n)) }

// BM25 is the formula as the books have it.
func BM25(docs, df, tf, length int, average float64) float64 {
	const k1, b = 1.2, 0.75
	idf := math.Log(1 + (float64(docs-df)+0.5)/(float64(df)+0.5))
	return max(idf, 1.0/16) * float64(tf) * (k1 + 1) / (float64(tf) + k1*(1-b+b*float64(length)/average))
}

// Plain answers as Search does, from the sums of all documents.
func (s *Set) Plain(text string, limit int, accept func(int) bool) ([]Hit, error) {
	q := s.query(text)
	defer s.queries.Put(q)
	if !q.lookUp() {
		return nil, ErrDamaged
	}
	sums, keys := make([]uint32, s.docs), make([]uint64, s.docs)
	for i := range s.segments {
		seg := &s.segments[i]
		for doc := range seg.Index.docs {
			keys[seg.base+int(doc)], _ = seg.Index.key(doc)
		}
		for _, w := range q.found {
			w.lists[i].each(func(doc uint32, count uint8) {
				class, _ := seg.Index.lengthClass(doc)
				if !seg.Deleted.Has(int(doc)) {
					sums[seg.base+int(doc)] += s.weights.score(uint32(count)<<tfShift|uint32(class), w.idf)
				}
			})
		}
	}
	var docs []int
	for doc, sum := range sums {
		if sum > 0 && (accept == nil || accept(doc)) {
			docs = append(docs, doc)
		}
	}
	slices.SortFunc(docs, func(a, b int) int {
		return cmp.Or(cmp.Compare(sums[b], sums[a]), cmp.Compare(keys[a], keys[b]), cmp.Compare(a, b))
	})
	var hits []Hit
	for _, doc := range docs[:min(limit, len(docs))] {
		hits = append(hits, Hit{doc, float32(sums[doc]) / scoreUnit})
	}
	return hits, nil
}

// BuildOn is Build on so many processors.
func BuildOn(docs []Document, processors int) *Index { return buildOn(docs, processors) }

// Numbered are the terms of texts that are read one after the other.
func Numbered(texts ...string) [][]string {
	n := newNumberer(0)
	out := make([][]string, len(texts))
	for i, text := range texts {
		for _, term := range n.numbers(nil, text) {
			out[i] = append(out[i], string(n.text(term)))
		}
	}
	return out
}
