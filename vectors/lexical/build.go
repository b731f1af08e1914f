package lexical

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// Document is a text that can be found.
type Document struct {
	// Title is what the text is about; its words weigh more.
	Title string
	Body  string
	// Key puts documents with equal scores in order, the smallest first.
	Key uint64
}

// Build makes the index of these documents, which are numbered from 0. Equal documents make equal bytes. The error is
// ErrTooMany, if any.
func Build(docs []Document) (*Index, error) {
	if len(docs) > MaxDocuments {
		return nil, ErrTooMany
	}
	b := newBuilder(len(docs))
	for i := range docs {
		b.add(&docs[i])
	}
	return b.index(), nil
}

// builder gathers the documents of an index.
type builder struct {
	cutter cutter
	vocabulary
	lengths []byte // classes
	keys    []uint64
	// entries has for each document and term, in the order of documents, the number of the term and the posting.
	entries []entry
	// at is for each term the place of its entry in the document that is being added, if it is not below begin.
	at    []int
	begin int
}

type entry struct{ term, posting uint32 }

func newBuilder(docs int) *builder {
	return &builder{vocabulary: newVocabulary(1 << 12), lengths: make([]byte, 0, docs), keys: make([]uint64, 0, docs)}
}

// add adds a document.
func (b *builder) add(d *Document) {
	b.begin = len(b.entries)
	length := 0
	count := func(weight uint32, mark uint32) func([]byte) {
		return func(term []byte) {
			length += int(weight)
			e := b.entryOf(b.number(term))
			tf := e.posting >> tfShift & maxTF
			e.posting = e.posting&^(maxTF<<tfShift) | min(tf+weight, maxTF)<<tfShift | mark
		}
	}
	b.cutter.cut(d.Title, count(titleWeight, titleBit))
	b.cutter.cut(d.Body, count(1, 0))
	class := lengthClass(length)
	for i := b.begin; i < len(b.entries); i++ {
		b.entries[i].posting |= uint32(len(b.lengths))<<docShift | uint32(class)
	}
	b.lengths = append(b.lengths, class)
	b.keys = append(b.keys, d.Key)
}

// entryOf is the entry of a term in the document that is being added.
func (b *builder) entryOf(term uint32) *entry {
	if int(term) == len(b.at) {
		b.at = append(b.at, -1)
	}
	if b.at[term] < b.begin {
		b.at[term] = len(b.entries)
		b.entries = append(b.entries, entry{term: term})
	}
	return &b.entries[b.at[term]]
}

// index lays the gathered documents out.
func (b *builder) index() *Index {
	order := b.sorted()
	rank := make([]uint32, len(order))
	for i, term := range order {
		rank[term] = uint32(i)
	}
	// A counting sort by term keeps the documents in order.
	starts := make([]uint32, len(order)+1)
	for _, e := range b.entries {
		starts[rank[e.term]+1]++
	}
	for i := range order {
		starts[i+1] += starts[i]
	}
	next := slices.Clone(starts)
	postings := make([]uint32, len(b.entries))
	for _, e := range b.entries {
		postings[next[rank[e.term]]] = e.posting
		next[rank[e.term]]++
	}
	terms := func(i int) []byte { return b.text(order[i]) }
	return layOut(b.lengths, b.keys, len(order), terms, starts, postings)
}

// vocabulary numbers terms in the order of their first occurrence.
type vocabulary struct {
	texts  []byte
	ends   []uint32 // of the text of each term
	hashes []uint64
	slots  []uint32 // number + 1
}

func newVocabulary(slots int) vocabulary { return vocabulary{slots: make([]uint32, slots)} }

func (v *vocabulary) text(term uint32) []byte {
	from := uint32(0)
	if term > 0 {
		from = v.ends[term-1]
	}
	return v.texts[from:v.ends[term]]
}

// number is the number of a term, a new one if it is not there yet.
func (v *vocabulary) number(term []byte) uint32 {
	hash := xxhash.Sum64(term)
	mask := uint64(len(v.slots) - 1)
	at := hash & mask
	for ; v.slots[at] != 0; at = (at + 1) & mask {
		if n := v.slots[at] - 1; v.hashes[n] == hash && bytes.Equal(v.text(n), term) {
			return n
		}
	}
	n := uint32(len(v.ends))
	v.texts = append(v.texts, term...)
	v.ends = append(v.ends, uint32(len(v.texts)))
	v.hashes = append(v.hashes, hash)
	v.slots[at] = n + 1
	if 2*len(v.ends) > len(v.slots) {
		v.grow()
	}
	return n
}

func (v *vocabulary) grow() {
	v.slots = make([]uint32, 2*len(v.slots))
	for n, hash := range v.hashes {
		setSlot(v.slots, hash, uint32(n))
	}
}

// setSlot puts a number into a hash table that has room.
func setSlot(slots []uint32, hash uint64, n uint32) {
	mask := uint64(len(slots) - 1)
	at := hash & mask
	for slots[at] != 0 {
		at = (at + 1) & mask
	}
	slots[at] = n + 1
}

// sorted lists the numbers of the terms in the order of their texts.
func (v *vocabulary) sorted() []uint32 {
	type row struct {
		begin uint64 // of the text: most comparisons end here
		term  uint32
	}
	rows := make([]row, len(v.ends))
	for i := range rows {
		var begin [8]byte
		copy(begin[:], v.text(uint32(i)))
		rows[i] = row{binary.BigEndian.Uint64(begin[:]), uint32(i)}
	}
	slices.SortFunc(rows, func(a, b row) int {
		if a.begin != b.begin {
			return cmp.Compare(a.begin, b.begin)
		}
		return bytes.Compare(v.text(a.term), v.text(b.term))
	})
	out := make([]uint32, len(rows))
	for i, r := range rows {
		out[i] = r.term
	}
	return out
}
