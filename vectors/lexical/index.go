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
