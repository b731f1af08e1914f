package lexical

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// mostBounded is how many terms of a query are looked at window by window, the most frequent ones. Of so many terms, the
// others only add a little.
const mostBounded = 8

// tract is a part of a segment that is searched at once, up to tractWindows windows, with what the terms of the query
// have there.
type tract struct {
	first, windows int // the number of its first window; how many
	lengths        []byte
	weights        *impacts

	// added are the terms of which each document is looked at: their lists are short. What they bring is added up in
	// sums, which is 0 for all other documents; touched has the documents, and seen the same as bits.
	added   []addedTerm
	sums    []uint32
	touched []uint16
	seen    []uint64

	// bounded are the others. upper has for each window their highest possible score, in units of scale rounded up: of
	// eight windows that follow each other the even ones are in one word, the odd ones in the next, 16 bits each.
	bounded []boundedTerm
	upper   []uint64
	scale   uint32
	// Of the window that is looked at, for each of these terms: its documents, its highest possible score, and the sum
	// of it and those of the terms before.
	masks        [mostBounded]uint64
	mosts, reach [mostBounded]uint32
}

// addedTerm is a term of which every document is looked at.
type addedTerm struct {
	*list
	idf  uint32
	next int // the number of the next posting
}

// boundedTerm is what a frequent term has in a tract.
type boundedTerm struct {
	*list
	idf  uint32
	unit uint32 // the score of one of highest
	lane uint64 // the same in tract.scale
	base int    // the number of the first posting in the tract
	// For each window: its documents, the highest weight in it, and the number of its first posting after base.
	masks, highest, begins []byte
}

// begin takes the terms that a segment has. found has the most frequent ones first.
func (t *tract) begin(found []wanted, segment int, stretch float64) {
	t.added, t.bounded = t.added[:0], t.bounded[:0]
	sum := uint32(0)
	for i := range found {
		w := &found[i]
		switch l := &w.lists[segment]; {
		case l.df == 0:
		case l.masks == nil || len(t.bounded) == mostBounded:
			t.added = append(t.added, addedTerm{list: l, idf: w.idf})
		default:
			unit := boundWeight(w.idf, stretch)
			t.bounded = append(t.bounded, boundedTerm{list: l, idf: w.idf, unit: unit})
			sum += unit
		}
	}
	// The sum of all lanes of a window stays below 1<<16: that of the terms' is at most 257, each rounded up.
	t.scale = sum/(257-mostBounded) + 1
	for i := range t.bounded {
		t.bounded[i].lane = uint64((t.bounded[i].unit + t.scale - 1) / t.scale)
	}
}

// enter goes to the tract that begins at a window. It is false for damage.
func (t *tract) enter(first int, lengths []byte, weights *impacts) bool {
	t.first, t.weights = first, weights
	t.lengths = lengths[first<<windowShift:]
	t.lengths = t.lengths[:min(len(t.lengths), tractWindows<<windowShift)]
	t.windows = (len(t.lengths) + windowSize - 1) >> windowShift
	words := (t.windows + 7) / 8
	t.upper = slices.Grow(t.upper[:0], 2*words)[:2*words]
	clear(t.upper)
	for i := range t.bounded {
		t.bounded[i].enter(t)
	}
	if len(t.sums) < len(t.lengths) {
		t.sums = make([]uint32, len(t.lengths))
		t.touched = make([]uint16, 0, len(t.lengths)+1) // add writes behind the last one
	}
	t.touched = t.touched[:0]
	for i := len(t.added) - 1; i >= 0; i-- { // what is rare weighs most
		if !t.add(&t.added[i]) {
			return false
		}
	}
	return true
}

// lowBytes are the even bytes of a word, as four numbers of 16 bits.
const lowBytes = 0x00ff00ff00ff00ff

// enter takes the part of the block, and adds its highest possible scores to upper.
func (b *boundedTerm) enter(t *tract) {
	l, from, to := b.list, t.first, t.first+t.windows
	b.base = int(binary.LittleEndian.Uint32(l.bases[4*(from/tractWindows):]))
	b.masks, b.begins = l.masks[8*from:8*to], l.begins[2*from:2*to]
	b.highest = l.highest[from : from+(t.windows+7)&^7]
	highest, upper := b.highest, t.upper
	for len(upper) >= 2 && len(highest) >= 8 {
		eight := binary.LittleEndian.Uint64(highest)
		upper[0] += eight & lowBytes * b.lane
		upper[1] += eight >> 8 & lowBytes * b.lane
		upper, highest = upper[2:], highest[8:]
	}
}

// mostOf is the highest possible score of the bounded terms in a window.
func (t *tract) mostOf(w int) uint32 {
	return uint32(t.upper[w>>3<<1|w&1]>>(w>>1&3*16)) & (1<<16 - 1) * t.scale
}

// add adds the scores of a term to sums. It is false for damage.
func (t *tract) add(a *addedTerm) bool {
	if a.masks != nil {
		return t.addFrequent(a)
	}
	sums, touched, n := t.sums[:len(t.lengths)], t.touched[:cap(t.touched)], len(t.touched)
	base, weights, idf := uint32(t.first)<<windowShift, t.weights, a.idf
	rest := a.postings[a.next*postingSize:]
	for ; len(rest) >= postingSize; rest = rest[postingSize:] {
		posting := binary.LittleEndian.Uint32(rest)
		doc := posting>>docShift - base
		if int(doc) >= len(sums) {
			break
		}
		if n >= len(touched) {
			t.touched = touched
			return false
		}
		sum := sums[doc]
		touched[n] = uint16(doc)
		if sum == 0 {
			n++
		}
		sums[doc] = sum + weights.score(posting, idf)
	}
	a.next = a.df - len(rest)/postingSize
	t.touched = touched[:n]
	return true
}

// addFrequent adds the scores of a term that is not among the most frequent ones of a long query.
func (t *tract) addFrequent(a *addedTerm) bool {
	for w := range t.windows {
		for mask := a.mask(t.first + w); mask != 0 && a.next < a.df; mask &= mask - 1 {
			doc := w<<windowShift + bits.TrailingZeros64(mask)
			if doc >= len(t.lengths) {
				return false
			}
			if t.sums[doc] == 0 {
				if len(t.touched) == cap(t.touched) {
					return false
				}
				t.touched = append(t.touched, uint16(doc))
			}
			t.sums[doc] += t.score(a.counts[a.next], doc, a.idf)
			a.next++
		}
	}
	return true
}

// score is what a posting of a frequent term adds to the score of a document of the tract.
func (t *tract) score(count uint8, doc int, idf uint32) uint32 {
	return t.weights.score(uint32(count)<<tfShift|uint32(t.lengths[doc]&lengthMask), idf)
}
