package lexical

import (
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
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

const (
	magic      = "rcnlex\x00\x03" // ends with the version
	headerSize = 72
	pageShift  = 16 // a page is 64 KiB
)

// header is the start of the index, after the magic.
type header struct {
	docs, terms, slots, text, blocks, postings uint32
	// length is the sum of the lengths of all documents.
	length uint64
	// refLength through refDocs is the average length that the highest weights of windows hold for.
	refDocs, refLength uint64
	// sums is the checksum of the section sums.
	sums uint64
}

// Index is an inverted index. It never changes, and is safe for concurrent use.
type Index struct {
	header
	data []byte
	// The sections of data.
	lengths, keys, slotRows, termRows, texts, blocks, pageSums section
	// checked has a bit for each page that was compared with its checksum.
	checked []atomic.Uint64
}

// section is a part of the data, and its offset.
type section struct {
	at   int
	data []byte
}

// Sizes of the rows of the sections in bytes.
const (
	keySize     = 8
	slotSize    = 4
	termSize    = 12
	postingSize = 4
	blockUnit   = 4 // of the sizes of blocks
	sumSize     = 8
)

// Bytes returns the data of the lexical index, in its format. The caller must not change it.
func (x *Index) Bytes() []byte { return x.data }

// Docs returns the number of documents in the lexical index.
func (x *Index) Docs() int { return int(x.docs) }

// Open opens the lexical index in data by its header. The bytes are used in place and must not change. Open reads only
// the header and costs the same for every size; each page is checked on its first use.
func Open(data []byte) (*Index, error) {
	if len(data) < headerSize || string(data[:len(magic)]) != magic {
		return nil, ErrDamaged
	}
	if xxhash.Sum64(data[:headerSize-8]) != binary.LittleEndian.Uint64(data[headerSize-8:]) {
		return nil, ErrDamaged
	}
	x := &Index{data: data, header: readHeader(data)}
	if !x.layOut() || xxhash.Sum64(x.pageSums.data) != x.sums {
		return nil, ErrDamaged
	}
	return x, nil
}

// Verify checks everything at once.
func (x *Index) Verify() error {
	if !x.sound(headerSize, x.pageSums.at) {
		return ErrDamaged
	}
	return nil
}

func readHeader(data []byte) header {
	u32 := func(at int) uint32 { return binary.LittleEndian.Uint32(data[at:]) }
	u64 := func(at int) uint64 { return binary.LittleEndian.Uint64(data[at:]) }
	return header{docs: u32(8), terms: u32(12), slots: u32(16), text: u32(20), blocks: u32(24), postings: u32(28),
		length: u64(32), refDocs: u64(40), refLength: u64(48), sums: u64(56)}
}

func (h header) write(data []byte) {
	copy(data, magic)
	for i, n := range []uint32{h.docs, h.terms, h.slots, h.text, h.blocks, h.postings} {
		binary.LittleEndian.PutUint32(data[8+4*i:], n)
	}
	for i, n := range []uint64{h.length, h.refDocs, h.refLength, h.sums} {
		binary.LittleEndian.PutUint64(data[32+8*i:], n)
	}
	binary.LittleEndian.PutUint64(data[headerSize-8:], xxhash.Sum64(data[:headerSize-8]))
}

// windows returns the number of windows that the documents fill.
func (h header) windows() int { return (int(h.docs) + windowSize - 1) >> windowShift }

// sizes are the sizes of the sections in bytes, in their order.
func (h header) sizes() [7]uint64 {
	out := [7]uint64{
		uint64(h.docs), uint64(h.docs) * keySize, uint64(h.slots) * slotSize, (uint64(h.terms) + 1) * termSize,
		uint64(h.text), uint64(h.blocks) * blockUnit,
	}
	body := uint64(0)
	for _, n := range out {
		body += aligned(n)
	}
	out[6] = pages(body) * sumSize
	return out
}

func aligned(n uint64) uint64 { return (n + 7) &^ 7 }
func pages(n uint64) uint64   { return (n + 1<<pageShift - 1) >> pageShift }

// layOut finds the sections in data, and reports whether they fill it and fit together.
func (x *Index) layOut() bool {
	if x.docs > MaxDocuments || x.slots&(x.slots-1) != 0 || x.slots <= x.terms || x.refDocs == 0 || x.refLength == 0 ||
		x.length > maxTotal || x.refLength > maxTotal || x.refDocs > maxTotal ||
		uint64(x.header.postings) > uint64(x.header.blocks)*blockUnit { // a posting takes a byte at least
		return false
	}
	at := uint64(headerSize)
	sections := []*section{
		&x.lengths, &x.keys, &x.slotRows, &x.termRows, &x.texts, &x.blocks, &x.pageSums,
	}
	for i, size := range x.sizes() {
		if at+aligned(size) > uint64(len(x.data)) {
			return false
		}
		*sections[i] = section{int(at), x.data[at : at+size : at+size]}
		at += aligned(size)
	}
	x.checked = make([]atomic.Uint64, (len(x.pageSums.data)/sumSize+63)/64)
	return at == uint64(len(x.data))
}

// rows returns n rows of a section, starting at row from. It returns nil, false if they do not exist or are damaged.
func (x *Index) rows(s *section, size, from, n int) ([]byte, bool) {
	if from < 0 || n < 0 || from > len(s.data)/size || n > len(s.data)/size-from {
		return nil, false
	}
	from, n = from*size, n*size
	return s.data[from : from+n : from+n], x.sound(s.at+from, s.at+from+n)
}

// sound reports whether the pages that data[from:to] touches match their checksums. It remembers the pages that do.
func (x *Index) sound(from, to int) bool {
	if from >= to {
		return true
	}
	for page := (from - headerSize) >> pageShift; page <= (to-1-headerSize)>>pageShift; page++ {
		if x.checked[page>>6].Load()&(1<<(page&63)) == 0 && !x.check(page) {
			return false
		}
	}
	return true
}

// check compares a page with its sum.
func (x *Index) check(page int) bool {
	from := headerSize + page<<pageShift
	to := min(from+1<<pageShift, x.pageSums.at)
	if xxhash.Sum64(x.data[from:to]) != binary.LittleEndian.Uint64(x.pageSums.data[page*sumSize:]) {
		return false
	}
	x.checked[page>>6].Or(1 << (page & 63))
	return true
}

// seal writes the checksums and the header into data that is laid out and filled.
func (x *Index) seal() {
	for page := range len(x.pageSums.data) / sumSize {
		from := headerSize + page<<pageShift
		sum := xxhash.Sum64(x.data[from:min(from+1<<pageShift, x.pageSums.at)])
		binary.LittleEndian.PutUint64(x.pageSums.data[page*sumSize:], sum)
		x.checked[page>>6].Or(1 << (page & 63))
	}
	x.sums = xxhash.Sum64(x.pageSums.data)
	x.header.write(x.data)
}
