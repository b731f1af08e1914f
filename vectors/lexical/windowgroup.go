package lexical

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// mostBlockMax is the maximum number of block-max terms of a query, the most frequent ones. With that many terms, the
// others add only a little.
const mostBlockMax = 8

// windowGroup is the part of a segment that is searched at once, up to groupWindows windows, with the lists of the
// query's terms in it.
type windowGroup struct {
	first, windows int // the number of its first window; how many
	lengths        []byte
	weights        *impacts

	// accumulated are the terms with short lists: each of their documents is visited. Their scores are summed in
	// sums, which is 0 for all other documents; touched lists the documents, and seen has them as bits.
	accumulated []accumulatedTerm
	sums        []uint32
	touched     []uint16
	seen        []uint64

	// blockMax are the other terms. upper has for each window their highest possible score, in units of scale rounded
	// up: of eight consecutive windows the even ones are in one word, the odd ones in the next, 16 bits each.
	blockMax []blockMaxTerm
	upper    []uint64
	scale    uint32
	// For the current window and each of these terms: its documents, its highest possible score, and the sum of it and
	// those of the terms before.
	masks        [mostBlockMax]uint64
	mosts, reach [mostBlockMax]uint32
}

// accumulatedTerm is a term whose documents are all visited.
type accumulatedTerm struct {
	*list
	idf  uint32
	next int // the number of the next posting
}

// blockMaxTerm is a frequent term in a window group.
type blockMaxTerm struct {
	*list
	idf  uint32
	unit uint32 // the score of one of highest
	lane uint64 // the same in tract.scale
	base int    // the number of the first posting in the group
	// For each window: its documents, the highest weight in it, and the number of its first posting after base.
	masks, highest, begins []byte
}

// begin sets the terms that a segment has. found has the most frequent ones first.
func (t *windowGroup) begin(found []wanted, segment int, stretch float64) {
	t.accumulated, t.blockMax = t.accumulated[:0], t.blockMax[:0]
	sum := uint32(0)
	for i := range found {
		w := &found[i]
		switch l := &w.lists[segment]; {
		case l.df == 0:
		case l.masks == nil || len(t.blockMax) == mostBlockMax:
			t.accumulated = append(t.accumulated, accumulatedTerm{list: l, idf: w.idf})
		default:
			unit := boundWeight(w.idf, stretch)
			t.blockMax = append(t.blockMax, blockMaxTerm{list: l, idf: w.idf, unit: unit})
			sum += unit
		}
	}
	// The sum of all lanes of a window stays below 1<<16: that of the terms is at most 257, each rounded up.
	t.scale = sum/(257-mostBlockMax) + 1
	for i := range t.blockMax {
		t.blockMax[i].lane = uint64((t.blockMax[i].unit + t.scale - 1) / t.scale)
	}
}

// enter moves to the group that begins at a window. It returns false for damage.
func (t *windowGroup) enter(first int, lengths []byte, weights *impacts) bool {
	t.first, t.weights = first, weights
	t.lengths = lengths[first<<windowShift:]
	t.lengths = t.lengths[:min(len(t.lengths), groupWindows<<windowShift)]
	t.windows = (len(t.lengths) + windowSize - 1) >> windowShift
	words := (t.windows + 7) / 8
	t.upper = slices.Grow(t.upper[:0], 2*words)[:2*words]
	clear(t.upper)
	for i := range t.blockMax {
		t.blockMax[i].enter(t)
	}
	if len(t.sums) < len(t.lengths) {
		t.sums = make([]uint32, len(t.lengths))
		t.touched = make([]uint16, 0, len(t.lengths)+1) // add writes behind the last one
	}
	t.touched = t.touched[:0]
	for i := len(t.accumulated) - 1; i >= 0; i-- { // rare terms weigh most
		if !t.accumulate(&t.accumulated[i]) {
			return false
		}
	}
	return true
}

// lowBytes are the even bytes of a word, as four numbers of 16 bits.
const lowBytes = 0x00ff00ff00ff00ff

// enter moves to the group's part of the block, and adds its highest possible scores to upper.
func (b *blockMaxTerm) enter(t *windowGroup) {
	l, from, to := b.list, t.first, t.first+t.windows
	b.base = int(binary.LittleEndian.Uint32(l.bases[4*(from/groupWindows):]))
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

// mostOf returns the highest possible score of the block-max terms in a window.
func (t *windowGroup) mostOf(w int) uint32 {
	return uint32(t.upper[w>>3<<1|w&1]>>(w>>1&3*16)) & (1<<16 - 1) * t.scale
}

// accumulate adds the scores of a term to sums. It returns false for damage.
func (t *windowGroup) accumulate(a *accumulatedTerm) bool {
	if a.masks != nil {
		return t.accumulateFrequent(a)
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

// accumulateFrequent adds the scores of a frequent term of a long query that is not among the mostBlockMax first ones.
func (t *windowGroup) accumulateFrequent(a *accumulatedTerm) bool {
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

// score returns the score that a posting of a frequent term adds to a document of the group.
func (t *windowGroup) score(count uint8, doc int, idf uint32) uint32 {
	return t.weights.score(uint32(count)<<tfShift|uint32(t.lengths[doc]&lengthMask), idf)
}

// withBlockMax adds the scores of the block-max terms for a document to a sum.
func (t *windowGroup) withBlockMax(doc int, sum uint32) uint32 {
	w, bit := doc>>windowShift, uint64(1)<<(doc&(windowSize-1))
	for i := range t.blockMax {
		b := &t.blockMax[i]
		if mask := binary.LittleEndian.Uint64(b.masks[8*w:]); mask&bit != 0 {
			sum += t.scoreOf(b, w, mask, bit)
		}
	}
	return sum
}

// scoreOf returns the score that a term adds to a document of a window, which is bit in mask.
func (t *windowGroup) scoreOf(b *blockMaxTerm, w int, mask, bit uint64) uint32 {
	n := b.base + int(binary.LittleEndian.Uint16(b.begins[2*w:])) + bits.OnesCount64(mask&(bit-1))
	if n >= len(b.counts) {
		return 0 // of a damaged index
	}
	return t.score(b.counts[n], w<<windowShift|bits.TrailingZeros64(bit), b.idf)
}

// needed returns the least value of upper of a window that can have a document with the score.
func (t *windowGroup) needed(score uint32) uint32 { return min((score+t.scale-1)/t.scale, 1<<16-1) }

// most estimates the maximum of upper: it reads only some windows.
func (t *windowGroup) most() uint32 {
	most := uint64(0)
	for i := 0; i < len(t.upper); i += 3 {
		u := t.upper[i]
		most = max(most, u>>48, u>>32&0xffff, u>>16&0xffff, u&0xffff)
	}
	return uint32(most)
}

// candidates returns the documents of a window whose score may be least or more: one whose last term is term i cannot have
// more than the highest scores of i and of all before it (MaxScore: Turtle and Flood, "Query evaluation: strategies
// and optimizations", 1995), and must have enough of the terms before i if that of i alone is too small. All documents
// of the window are tested at once.
func (t *windowGroup) candidates(least uint32) (able uint64) {
	for i := len(t.blockMax) - 1; i >= 0 && t.reach[i] >= least; i-- {
		if t.mosts[i] >= least {
			able |= t.masks[i]
			continue
		}
		others := uint64(0)
		for k := i - 1; k >= 0 && t.reach[k] >= least-t.mosts[i]; k-- {
			others |= t.masks[k]
		}
		able |= t.masks[i] & others
	}
	return able
}
