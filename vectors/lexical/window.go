package lexical

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// visit searches a window group.
type visit struct {
	*windowGroup
	*segment
	best    *best
	accept  func(int) bool
	damaged bool
}

// offerAccumulated offers the documents of the accumulated terms, with the scores of the block-max terms added.
func (v *visit) offerAccumulated() {
	t, sums := v.windowGroup, v.sums
	first := uint32(t.first) << windowShift
	if len(t.blockMax) == 0 {
		for _, doc := range t.touched {
			sum := sums[doc]
			sums[doc] = 0
			if sum >= v.best.least {
				v.offer(first+uint32(doc), sum)
			}
		}
		return
	}
	t.seen = slices.Grow(t.seen[:0], t.windows)[:t.windows]
	clear(t.seen)
	for _, doc := range t.touched {
		sum, w := sums[doc], int(doc)>>windowShift
		sums[doc] = 0
		t.seen[w] |= 1 << (doc & (windowSize - 1))
		if sum+t.mostOf(w) < v.best.least {
			continue
		}
		if sum = t.withBlockMax(int(doc), sum); sum >= v.best.least {
			v.offer(first+uint32(doc), sum)
		}
	}
}

// walk visits the windows of the group for documents that have only block-max terms, roughly in the order of their
// highest possible scores, until none can exceed the lowest score in the result.
func (v *visit) walk() {
	if len(v.blockMax) == 0 {
		return
	}
	most := v.most()
	for below, level := uint32(1<<16), most-most/8; ; level -= most / 8 {
		least := v.needed(v.best.least)
		if level <= max(least, most/2) {
			v.sweep(least, below)
			return
		}
		v.sweep(level, below)
		below = level
	}
}

// The bits of the four numbers in a word of upper.
const (
	ones     = 0x0001000100010001
	highBits = ones << 15
)

// sweep visits the windows whose upper is at least from and below to.
func (v *visit) sweep(from, to uint32) {
	least, half := v.best.least, uint64(from/2)*ones // compared without the lowest bit, nothing is carried to the next number
	for i, four := range v.upper {
		for hits := ((four>>1 | highBits) - half) & highBits; hits != 0; hits &= hits - 1 {
			shift := bits.TrailingZeros64(hits) &^ 15
			upper := uint32(four>>shift) & (1<<16 - 1)
			if w := i&^1<<2 + shift>>3 + i&1; upper >= from && upper < to && w < v.windows {
				v.visitWindow(w)
				if v.best.least != least {
					least = v.best.least
					from = max(from, v.needed(least))
					half = uint64(from/2) * ones
				}
			}
		}
	}
}

// visitWindow offers the documents of a window.
func (v *visit) visitWindow(w int) {
	t, sum := v.windowGroup, uint32(0)
	for i := range t.blockMax {
		b := &t.blockMax[i]
		most := uint32(b.highest[w]) * b.unit
		sum += most
		t.masks[i], t.mosts[i], t.reach[i] = binary.LittleEndian.Uint64(b.masks[8*w:]), most, sum
	}
	if sum < v.best.least {
		return
	}
	first := uint32(t.first+w) << windowShift
	for able := t.candidates(v.best.least) & v.unseen(w); able != 0; able &= able - 1 {
		bit, sum := able&-able, uint32(0)
		for i := range t.blockMax {
			if mask := t.masks[i]; mask&bit != 0 {
				sum += t.scoreOf(&t.blockMax[i], w, mask, bit)
			}
		}
		if sum >= v.best.least {
			v.offer(first|uint32(bits.TrailingZeros64(able)), sum)
		}
	}
}

// unseen returns the documents of a window that exist and were not seen.
func (v *visit) unseen(w int) uint64 {
	documents := ^v.seen[w]
	if n := len(v.lengths) - w<<windowShift; n < windowSize {
		documents &= 1<<n - 1
	}
	return documents
}

// offer adds a document to the result if its score is high enough.
func (v *visit) offer(doc, score uint32) {
	key, ok := v.Index.key(doc)
	v.damaged = v.damaged || !ok
	c := candidate{score, uint32(v.base) + doc, key}
	if v.best.wants(c) && !v.Deleted.Has(int(doc)) && (v.accept == nil || v.accept(int(c.doc))) {
		v.best.push(c)
	}
}
