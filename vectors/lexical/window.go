package lexical

import (
	"encoding/binary"
	"math/bits"
	"slices"
)

// visit goes through a tract.
type visit struct {
	*tract
	*segment
	best    *best
	accept  func(int) bool
	damaged bool
}

// added offers the documents of the terms that are added up, with what the others bring them.
func (v *visit) added() {
	t, sums := v.tract, v.sums
	first := uint32(t.first) << windowShift
	if len(t.bounded) == 0 {
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
		if sum = t.whole(int(doc), sum); sum >= v.best.least {
			v.offer(first+uint32(doc), sum)
		}
	}
}

// whole is a sum with what the bounded terms bring a document.
func (t *tract) whole(doc int, sum uint32) uint32 {
	w, bit := doc>>windowShift, uint64(1)<<(doc&(windowSize-1))
	for i := range t.bounded {
		b := &t.bounded[i]
		if mask := binary.LittleEndian.Uint64(b.masks[8*w:]); mask&bit != 0 {
			sum += t.scoreOf(b, w, mask, bit)
		}
	}
	return sum
}

// scoreOf is what a term brings a document of a window, which is bit in mask.
func (t *tract) scoreOf(b *boundedTerm, w int, mask, bit uint64) uint32 {
	n := b.base + int(binary.LittleEndian.Uint16(b.begins[2*w:])) + bits.OnesCount64(mask&(bit-1))
	if n >= len(b.counts) {
		return 0 // of an index that is not what was written
	}
	return t.score(b.counts[n], w<<windowShift|bits.TrailingZeros64(bit), b.idf)
}

// walk looks at the windows of the tract for documents that only bounded terms have, roughly in the order of their
// highest possible scores, until none can have anything better than what was found.
func (v *visit) walk() {
	if len(v.bounded) == 0 {
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

// needed is the least of upper that a window must have that can bring a score.
func (t *tract) needed(score uint32) uint32 { return min((score+t.scale-1)/t.scale, 1<<16-1) }

// most is about the most that any window has: it looks at some only.
func (t *tract) most() uint32 {
	most := uint64(0)
	for i := 0; i < len(t.upper); i += 3 {
		u := t.upper[i]
		most = max(most, u>>48, u>>32&0xffff, u>>16&0xffff, u&0xffff)
	}
	return uint32(most)
}

// The bits of the four numbers in a word of upper.
const (
	ones     = 0x0001000100010001
	highBits = ones << 15
)

// sweep looks at the windows whose upper is at least from and below to.
func (v *visit) sweep(from, to uint32) {
	least, half := v.best.least, uint64(from/2)*ones // compared without the lowest bit, nothing is carried to the next number
	for i, four := range v.upper {
		for hits := ((four>>1 | highBits) - half) & highBits; hits != 0; hits &= hits - 1 {
			shift := bits.TrailingZeros64(hits) &^ 15
			upper := uint32(four>>shift) & (1<<16 - 1)
			if w := i&^1<<2 + shift>>3 + i&1; upper >= from && upper < to && w < v.windows {
				v.look(w)
				if v.best.least != least {
					least = v.best.least
					from = max(from, v.needed(least))
					half = uint64(from/2) * ones
				}
			}
		}
	}
}

// look offers the documents of a window.
func (v *visit) look(w int) {
	t, sum := v.tract, uint32(0)
	for i := range t.bounded {
		b := &t.bounded[i]
		most := uint32(b.highest[w]) * b.unit
		sum += most
		t.masks[i], t.mosts[i], t.reach[i] = binary.LittleEndian.Uint64(b.masks[8*w:]), most, sum
	}
	if sum < v.best.least {
		return
	}
	first := uint32(t.first+w) << windowShift
	for able := t.able(v.best.least) & v.left(w); able != 0; able &= able - 1 {
		bit, sum := able&-able, uint32(0)
		for i := range t.bounded {
			if mask := t.masks[i]; mask&bit != 0 {
				sum += t.scoreOf(&t.bounded[i], w, mask, bit)
			}
		}
		if sum >= v.best.least {
			v.offer(first|uint32(bits.TrailingZeros64(able)), sum)
		}
	}
}

// able are the documents of a window whose score may be least or more: one whose last term is term i cannot have more
// than the highest scores of i and of all before it (MaxScore: Turtle and Flood, "Query evaluation: strategies and
// optimizations", 1995), and has to have enough of the terms before i if that of i alone is too little. This is looked
// at for all documents of the window at once.
func (t *tract) able(least uint32) (able uint64) {
	for i := len(t.bounded) - 1; i >= 0 && t.reach[i] >= least; i-- {
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

// left are the documents of a window that exist and were not seen.
func (v *visit) left(w int) uint64 {
	documents := ^v.seen[w]
	if n := len(v.lengths) - w<<windowShift; n < windowSize {
		documents &= 1<<n - 1
	}
	return documents
}

// offer puts a document among the best if it belongs there.
func (v *visit) offer(doc, score uint32) {
	key, ok := v.Index.key(doc)
	v.damaged = v.damaged || !ok
	c := candidate{score, uint32(v.base) + doc, key}
	if v.best.wants(c) && !v.Deleted.Has(int(doc)) && (v.accept == nil || v.accept(int(c.doc))) {
		v.best.push(c)
	}
}
