package lexical

import (
	"encoding/binary"

	"github.com/cespare/xxhash/v2"
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
		if h.frequent(starts[i+1] - starts[i]) {
			h.dirs++
		}
	}
	size := uint64(headerSize)
	for _, n := range h.sizes() {
		size += aligned(n)
	}
	x := &Index{header: h, data: make([]byte, size)}
	x.layOut()
	copy(x.lengths.data, lengths)
	for i, key := range keys {
		binary.LittleEndian.PutUint64(x.keys.data[i*keySize:], key)
	}
	for i, p := range postings {
		binary.LittleEndian.PutUint32(x.postingRows.data[i*postingSize:], p)
	}
	x.fillTerms(text, starts, postings)
	x.seal()
	return x
}

// frequent reports whether a term with so many documents has a directory of windows. Of fewer documents a search looks
// at every one.
func (h header) frequent(df uint32) bool { return df >= 16 && df >= uint32(h.windows()) }

// fillTerms writes terms, texts, slots and directories.
func (x *Index) fillTerms(text func(int) []byte, starts, postings []uint32) {
	weights := newImpacts(x.refDocs, x.refLength)
	slots := make([]uint32, x.slots)
	at, dir := 0, 0
	for i := range int(x.terms) {
		x.putTerm(i, at, starts[i], dir)
		name := text(i)
		copy(x.texts.data[at:], name)
		at += len(name)
		place(slots, xxhash.Sum64(name), uint32(i))
		if list := postings[starts[i]:starts[i+1]]; x.frequent(uint32(len(list))) {
			x.putDir(dir, list, weights)
			dir++
		}
	}
	x.putTerm(int(x.terms), at, starts[x.terms], dir)
	for i, n := range slots {
		binary.LittleEndian.PutUint32(x.slotRows.data[i*slotSize:], n)
	}
}

func (x *Index) putTerm(i, text int, posting uint32, dir int) {
	row := x.termRows.data[i*termSize:]
	binary.LittleEndian.PutUint32(row, uint32(text))
	binary.LittleEndian.PutUint32(row[4:], posting)
	binary.LittleEndian.PutUint32(row[8:], uint32(dir))
}

// putDir writes for each window where its postings begin, and then for each the highest score.
func (x *Index) putDir(dir int, list []uint32, weights *impacts) {
	windows := x.windows()
	rows := x.dirRows.data[dir*windows*dirSize:][:windows*dirSize]
	begins, highest := rows[:4*windows], rows[4*windows:]
	i := 0
	for w := range windows {
		binary.LittleEndian.PutUint32(begins[4*w:], uint32(i))
		most := uint16(0)
		for ; i < len(list) && int(list[i]>>(docShift+windowShift)) == w; i++ {
			most = max(most, weights[list[i]&impactMask])
		}
		highest[w] = uint8((int(most) + boundUnit - 1) / boundUnit)
	}
}
