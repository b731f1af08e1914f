// Package lexical finds texts by their words: an inverted index with BM25 ranking in one flat slice of bytes, which is
// used in place, without decoding, and has the same bytes for the same documents on every machine.
//
// # Terms
//
// A text is cut into terms, see [Terms]: words in lower case without accents; identifiers, paths and compounds, whole
// and by their parts; no stop words. Queries are cut the same way, and a document matches if it has any of the terms.
//
// # Ranking
//
// The score is BM25 (Robertson and Zaragoza, "The Probabilistic Relevance Framework: BM25 and Beyond", 2009, with k1 =
// 1.2 and b = 0.75), with the idf that is never negative, ln(1 + (N-n+0.5)/(n+0.5)). A document is a [Document.Title]
// and a [Document.Body] in one bag: an occurrence in the title counts as titleWeight occurrences. How often a term
// occurs counts up to maxTF, where BM25 has long become flat, and lengths are rounded to seven bits (exactly up to 32,
// then to an eighth).
//
// All arithmetic is on integers (idf in 1/1024, the rest in 1/16384), so the sum over the terms depends neither on
// their order nor on the machine. Equal scores are ordered by [Document.Key], then by document number.
//
// # Segments
//
// An index never changes. Added documents go into another small index, removed ones are marked as deleted, and a [Set]
// searches the segments together: N, n and the average length are those of all live documents, so the answers are
// exactly those of one index built from them. [Merge] makes that one index without the texts.
//
// # Search
//
// Scores of rare terms are accumulated document by document; for frequent terms the windows give an upper bound
// (block-max). Documents that have only frequent terms are visited where the bound of a window exceeds the lowest score
// in the result, 64 at once: the masks show which documents have enough of the terms.
//
// # Format
//
// A file of package sections:
//
//	numbers   number of postings, sum of all lengths, documents and length of the reference, 8 bytes each
//	lengths   for each document its rounded length, one byte
//	keys      for each document its key, 8 bytes
//	slots     hash table of terms: number of the term + 1, or 0; 4 bytes each, a power of two of them
//	terms     for each term, sorted, and again for the end: begin of its text, of its block, number of its documents
//	text      the texts of the terms, one after the other
//	blocks    for each term its block, in units of 4 bytes
//
// The block of a term that fewer than every 32nd document has is its postings, ascending: document<<12 | in title<<11 |
// frequency<<7 | length; 4 bytes each. That of a more frequent one has, for windows of 64 documents and groups of 1024
// windows:
//
//	bases     for each group the number of its first posting, 4 bytes
//	masks     for each window its documents as bits, 8 bytes
//	begins    for each window the number of its first posting in the group, 2 bytes
//	highest   for each window the highest possible weight, in 1/142, rounded up, one byte
//	counts    for each posting in title<<4 | frequency, one byte
//
// A page is compared with its checksum on its first use: one query of a short process reads a few pages, not megabytes. No content of a file causes a panic; a file with other bytes than Build wrote gives
// [ErrDamaged] and must be rebuilt.
package lexical

import (
	"errors"
	"fmt"
	"math"

	"reconcile.dev/reconcile/schemas/sections"
)

// ErrDamaged reports that the bytes of an index were changed, or have another version.
var ErrDamaged = errors.New("the lexical index is damaged or of another version; build it again")

// ErrTooMany reports that there are more than MaxDocuments documents.
var ErrTooMany = fmt.Errorf("more than %d documents for one lexical index; make several", MaxDocuments)

// MaxDocuments is the maximum number of documents of one index.
const MaxDocuments = 1 << (32 - docShift)

// A posting is four bytes: document, whether the term is in its title, how often it occurs, how long the document is.
const (
	docShift    = 12
	titleBit    = 1 << 11
	impactMask  = 1<<11 - 1 // the bits of frequency and length
	tfShift     = 7
	lengthMask  = 1<<tfShift - 1
	countMask   = 1<<(docShift-tfShift) - 1 // the bits of title and frequency, after tfShift
	maxTF       = 15
	windowShift = 6 // a window is 64 documents, the bits of a word
	windowSize  = 1 << windowShift
	// groupWindows windows are searched at once; 65,536 documents, so that numbers of postings in them fit into 16
	// bits.
	groupWindows = 1 << 10
	// A term is frequent if at least every 32nd document has it.
	frequentShare = 32
)

// format is that of lexical indexes.
var format = sections.Format{Magic: "rcnwords", Version: 4}

// Index is an inverted index. It never changes, and is safe for concurrent use.
type Index struct {
	header
	file *sections.File
	// The sections of the file, except for the numbers.
	lengths, keys, slotRows, termRows, texts, blocks *sections.Section
}

// Sizes of the rows of the sections in bytes.
const (
	keySize     = 8
	slotSize    = 4
	termSize    = 12
	postingSize = 4
	blockUnit   = 4 // of the sizes of blocks
)

// Bytes returns the data of the lexical index, in its format. The caller must not change it.
func (x *Index) Bytes() []byte { return x.file.Bytes() }

// Docs returns the number of documents in the lexical index.
func (x *Index) Docs() int { return int(x.docs) }

// Open opens the lexical index in data. The bytes are used in place and must not change. Open reads the begin and the
// checksums: each page is compared with its checksum on its first use.
func Open(data []byte) (*Index, error) {
	file, err := format.Open(data)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	x, numbers := newIndex(file), file.Section(0)
	n := sections.Numbers[uint64](numbers.Data)
	if len(n) != 4 || n[0] > math.MaxUint32 || !numbers.Sound(0, len(numbers.Data)) {
		return nil, ErrDamaged
	}
	x.header = header{
		docs: uint32(len(x.lengths.Data)), terms: uint32(len(x.termRows.Data)/termSize) - 1,
		slots: uint32(len(x.slotRows.Data) / slotSize), text: uint32(len(x.texts.Data)),
		blocks: uint32(len(x.blocks.Data) / blockUnit), postings: uint32(n[0]), length: n[1], refDocs: n[2], refLength: n[3],
	}
	if !x.fits() {
		return nil, ErrDamaged
	}
	return x, nil
}

// newIndex returns the index with the sections of a file.
func newIndex(f *sections.File) *Index {
	return &Index{file: f, lengths: f.Section(1), keys: f.Section(2), slotRows: f.Section(3), termRows: f.Section(4),
		texts: f.Section(5), blocks: f.Section(6)}
}

// fits reports whether the sizes of the sections fit together.
func (x *Index) fits() bool {
	for i, size := range x.sizes() {
		if uint64(len(x.file.Get(i))) != size {
			return false
		}
	}
	return x.docs <= MaxDocuments && x.slots&(x.slots-1) == 0 && x.slots > x.terms && x.refDocs > 0 && x.refLength > 0 &&
		x.length <= maxTotal && x.refLength <= maxTotal && x.refDocs <= maxTotal &&
		uint64(x.header.postings) <= uint64(x.header.blocks)*blockUnit // a posting takes a byte at least
}

// Verify checks everything at once.
func (x *Index) Verify() error {
	if err := x.file.Verify(); err != nil {
		return fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return nil
}

// EachTerm calls yield with every term, in the order of their bytes, and with what calls its argument with the number of
// each document that has the term, ascending. The bytes are valid during the call. The error is ErrDamaged, if any.
func (x *Index) EachTerm(yield func(term []byte, docs func(func(doc uint32)))) error {
	for n := range x.terms {
		text, ok := x.text(n)
		if !ok {
			return ErrDamaged
		}
		l, ok := x.list(n)
		if !ok {
			return ErrDamaged
		}
		yield(text, func(each func(uint32)) { l.each(func(doc uint32, _ uint8) { each(doc) }) })
	}
	return nil
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
