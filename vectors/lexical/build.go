package lexical

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"runtime"
	"slices"
	"sync"

	"github.com/cespare/xxhash/v2"
	"reconcile.dev/reconcile/schemas/sections"
)

// Document is a text to index.
type Document struct {
	// Title is what the text is about; its words weigh more.
	Title string
	Body  string
	// Names are the names of the document, see [Set.Named]. They do not count for other queries.
	Names []string
	// Key orders documents with equal scores, the smallest first.
	Key uint64
}

// Build builds the index of the documents, which are numbered from 0. Equal documents give equal bytes, on any number of
// processors. The only error is ErrTooMany.
func Build(docs []Document) (*Index, error) {
	if len(docs) > MaxDocuments {
		return nil, ErrTooMany
	}
	return buildOn(docs, min(runtime.GOMAXPROCS(0), len(docs)/leastShare+1)), nil
}

// leastShare is the number of documents for which another processor is worth its cost.
const leastShare = 1 << 11

// buildOn builds on the given number of processors.
func buildOn(docs []Document, processors int) *Index {
	builders := make([]*lexicalBuilder, processors)
	eachDocument(builders, func(i int) {
		builders[i] = readDocument(docs[len(docs)*i/processors : len(docs)*(i+1)/processors])
	})
	return layOutAll(builders)
}

// eachDocument calls do concurrently for the number of each builder, and waits.
func eachDocument(builders []*lexicalBuilder, do func(i int)) {
	var others sync.WaitGroup
	for i := 1; i < len(builders); i++ {
		others.Go(func() { do(i) })
	}
	do(0)
	others.Wait()
}

// lexicalBuilder collects the documents of an index, or of a part of it.
type lexicalBuilder struct {
	numberer
	lengths []byte // classes
	keys    []uint64
	// entries has for each document and term, in the order of documents, the number of the term and the posting, in pieces
	// with room for at least pieceSize each. entered is how many there are.
	entries   [][]entry
	pieceSize int
	entered   int
	// known is the count of each term so far.
	known []counted

	// Of a part: the number of its first document, and for each term its number among those of all parts, then the place of
	// its next posting.
	first  uint32
	joined []uint32

	numbered []uint32 // the terms of a title or body
	row      []entry  // the entries of the document that is being added
}

type entry struct{ term, posting uint32 }

// counted is how many documents a term has, and the number of the last entry with it.
type counted struct{ docs, last uint32 }

const (
	entryShare = 8 // about one entry for this many bytes of text
	mostPiece  = 1 << 15
)

// readDocument reads documents.
func readDocument(docs []Document) *lexicalBuilder {
	bytes := 0
	for i := range docs {
		bytes += len(docs[i].Title) + len(docs[i].Body)
	}
	b := &lexicalBuilder{
		numberer: newNumberer(bytes), lengths: make([]byte, 0, len(docs)), keys: make([]uint64, 0, len(docs)),
		pieceSize: min(bytes/entryShare, mostPiece),
	}
	for i := range docs {
		b.addDocument(&docs[i])
	}
	return b
}

// addDocument adds a document.
func (b *lexicalBuilder) addDocument(d *Document) {
	b.row = b.row[:0]
	b.addNames(d.Names)
	length := titleWeight*b.addTerms(d.Title, titleWeight, titleBit) + b.addTerms(d.Body, 1, 0)
	class := lengthClass(length)
	for i := range b.row {
		b.row[i].posting |= uint32(len(b.lengths))<<docShift | uint32(class)
	}
	b.lengths = append(b.lengths, class)
	b.keys = append(b.keys, d.Key)
	b.entered += len(b.row)
	last := len(b.entries) - 1
	if last < 0 || len(b.entries[last])+len(b.row) > cap(b.entries[last]) {
		b.entries = append(b.entries, make([]entry, 0, max(b.pieceSize, len(b.row))))
		last++
	}
	b.entries[last] = append(b.entries[last], b.row...)
}

// addNames adds the names of a document to its entries.
func (b *lexicalBuilder) addNames(names []string) {
	for i, name := range names {
		if slices.Contains(names[:i], name) {
			continue
		}
		b.addEntry(b.number([]byte(NameTerm(name))), 1, 0)
	}
}

// addTerms adds the terms of a text to the entries of its document, and returns their number.
func (b *lexicalBuilder) addTerms(text string, weight, mark uint32) int {
	b.numbered = b.numbers(b.numbered[:0], text)
	for _, term := range b.numbered {
		b.addEntry(term, weight, mark)
	}
	return len(b.numbered)
}

// addEntry adds a term to the entries of the current document.
func (b *lexicalBuilder) addEntry(term, weight, mark uint32) {
	for len(b.known) < len(b.ends) {
		b.known = append(b.known, counted{})
	}
	t := &b.known[term]
	if t.docs == 0 || int(t.last) < b.entered {
		t.docs++
		t.last = uint32(b.entered + len(b.row))
		b.row = append(b.row, entry{term: term})
	}
	e := &b.row[int(t.last)-b.entered]
	tf := e.posting >> tfShift & maxTF
	e.posting = e.posting&^(maxTF<<tfShift) | min(tf+weight, maxTF)<<tfShift | mark
}

// layOutAll writes the documents of all builders as one index, in the order of the builders.
func layOutAll(builders []*lexicalBuilder) *Index {
	all := &builders[0].vocabulary
	docs := joinTerms(all, builders)
	order := all.sorted()
	starts, next := make([]uint32, len(order)+1), make([]uint32, len(order))
	for i, term := range order {
		next[term] = starts[i]
		starts[i+1] = starts[i] + docs[term]
	}
	lengths, keys := builders[0].lengths, builders[0].keys
	for i, b := range builders {
		for term, n := range b.joined {
			b.joined[term] = next[n]
			next[n] += b.known[term].docs
		}
		if i > 0 {
			b.first = uint32(len(lengths))
			lengths, keys = append(lengths, b.lengths...), append(keys, b.keys...)
		}
	}
	postings := make([]uint32, starts[len(order)])
	eachDocument(builders, func(i int) { builders[i].sort(postings, builders[i].joined) })
	return layOut(lengths, keys, len(order), func(i int) []byte { return all.text(order[i]) }, starts, postings)
}

// joinTerms numbers the terms of all builders as one vocabulary, that of the first one, and returns how many documents each
// has.
func joinTerms(all *vocabulary, builders []*lexicalBuilder) (docs []uint32) {
	for i, b := range builders {
		b.joined = make([]uint32, len(b.known))
		for term := range b.joined {
			n := uint32(term)
			if i > 0 {
				n = all.number(b.text(n))
			}
			b.joined[term] = n
		}
	}
	docs = make([]uint32, len(all.ends))
	for _, b := range builders {
		for term, n := range b.joined {
			docs[n] += b.known[term].docs
		}
	}
	return docs
}

// sort puts each posting at the next place of its term: a counting sort, which keeps documents in order.
func (b *lexicalBuilder) sort(postings, next []uint32) {
	first := b.first << docShift
	for _, entries := range b.entries {
		for _, e := range entries {
			postings[next[e.term]] = e.posting + first
			next[e.term]++
		}
	}
}

// vocabulary numbers terms in the order of their first occurrence.
type vocabulary struct {
	texts  []byte
	ends   []uint32 // of the text of each term
	hashes []uint64
	slots  []uint32 // number + 1
}

func newVocabulary(slots int) vocabulary { return vocabulary{slots: make([]uint32, slots)} }

// number returns the number of a term, and assigns the next one to a new term.
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
