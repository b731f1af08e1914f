package lexical

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/schemas/sections"
)

// layOut makes an index of documents and of the postings of sorted terms: those of term i are
// postings[starts[i]:starts[i+1]].
func layOut(lengths []byte, keys []uint64, terms int, text func(int) []byte, starts, postings []uint32) *Index {
	h := header{docs: uint32(len(lengths)), terms: uint32(terms), slots: 1, postings: uint32(len(postings))}
	for h.slots < h.terms+h.terms/2+1 {
		h.slots *= 2
	}
	for _, class := range lengths {
		h.length += uint64(lengthOf(class))
	}
	h.refDocs, h.refLength = max(1, uint64(h.docs)), max(1, h.length)
	for i := range terms {
		h.text += uint32(len(text(i)))
		h.blocks += h.units(starts[i+1] - starts[i])
	}
	sizes := h.sizes()
	x := newIndex(format.New(sizes[:]...))
	x.header = h
	copy(x.file.Get(0), sections.Raw([]uint64{uint64(h.postings), h.length, h.refDocs, h.refLength}))
	copy(x.lengths.Data, lengths)
	copy(x.keys.Data, sections.Raw(keys))
	x.fillTerms(text, starts, postings)
	x.file.Seal()
	return x
}

// frequent reports whether a term with df documents is stored as a bitmap over all documents. A shorter list takes
// less space, and is converted to bits quickly.
func (h header) frequent(df uint32) bool { return df >= 16 && df >= h.docs/frequentShare }

// units is how many blockUnits the block of a term takes.
func (h header) units(df uint32) uint32 {
	if h.frequent(df) {
		return uint32(h.block(int(df)).end / blockUnit)
	}
	return df
}

// fillTerms writes terms, texts, slots and blocks.
func (x *Index) fillTerms(text func(int) []byte, starts, postings []uint32) {
	weights := newImpacts(x.refDocs, x.refLength)
	slots := make([]uint32, x.slots)
	at, place := 0, uint32(0)
	for i := range int(x.terms) {
		list := postings[starts[i]:starts[i+1]]
		df := uint32(len(list))
		x.putTerm(i, uint32(at), place, df)
		name := text(i)
		copy(x.texts.Data[at:], name)
		at += len(name)
		setSlot(slots, xxhash.Sum64(name), uint32(i))
		if data := x.blocks.Data[place*blockUnit:]; x.frequent(df) {
			x.putBlock(data, list, weights)
		} else {
			copy(data, sections.Raw(list))
		}
		place += x.units(df)
	}
	x.putTerm(int(x.terms), uint32(at), place, 0)
	copy(x.slotRows.Data, sections.Raw(slots))
}

func (x *Index) putTerm(i int, text, place, df uint32) {
	row := x.termRows.Data[i*termSize:]
	binary.LittleEndian.PutUint32(row, text)
	binary.LittleEndian.PutUint32(row[4:], place)
	binary.LittleEndian.PutUint32(row[8:], df)
}

// putBlock writes the block of a frequent term.
func (x *Index) putBlock(data []byte, list []uint32, weights *impacts) {
	form := x.block(len(list))
	i, base := 0, 0
	for w := range x.windows() {
		if w%groupWindows == 0 {
			base = i
			binary.LittleEndian.PutUint32(data[4*(w/groupWindows):], uint32(base))
		}
		binary.LittleEndian.PutUint16(data[form.begins+2*w:], uint16(i-base))
		mask, most := uint64(0), uint16(0)
		for ; i < len(list) && int(list[i]>>(docShift+windowShift)) == w; i++ {
			mask |= 1 << (list[i] >> docShift & (windowSize - 1))
			most = max(most, weights[list[i]&impactMask])
			data[form.counts+i] = uint8(list[i] >> tfShift & countMask)
		}
		binary.LittleEndian.PutUint64(data[form.masks+8*w:], mask)
		data[form.highest+w] = boundOf(most)
	}
}

// boundOf is a weight in boundUnit, rounded up.
func boundOf(weight uint16) uint8 { return uint8((int(weight) + boundUnit - 1) / boundUnit) }
