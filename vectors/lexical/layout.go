package lexical

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

// header has the sizes of the index.
type header struct {
	docs, terms, slots, text, blocks, postings uint32
	// length is the sum of the lengths of all documents.
	length uint64
	// refLength through refDocs is the average length that the highest weights of windows hold for.
	refDocs, refLength uint64
}

// windows returns the number of windows that the documents fill.
func (h header) windows() int { return (int(h.docs) + windowSize - 1) >> windowShift }

// sizes are the sizes of the sections in bytes, in their order.
func (h header) sizes() [7]uint64 {
	return [7]uint64{
		4 * 8, uint64(h.docs), uint64(h.docs) * keySize, uint64(h.slots) * slotSize, (uint64(h.terms) + 1) * termSize,
		uint64(h.text), uint64(h.blocks) * blockUnit,
	}
}

func aligned(n uint64) uint64 { return (n + 7) &^ 7 }

// block is the form of the block of a frequent term with df documents.
func (h header) block(df int) block {
	windows := h.windows()
	var b block
	b.masks = 4 * ((windows + groupWindows - 1) / groupWindows)
	b.begins = b.masks + 8*windows
	b.highest = b.begins + int(aligned(uint64(2*windows)))
	b.counts = b.highest + int(aligned(uint64(windows)))
	b.end = (b.counts + df + blockUnit - 1) &^ (blockUnit - 1)
	return b
}
