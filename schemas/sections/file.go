// Package sections is the format of binary files that are derived from others and can be rebuilt, such as indexes and
// caches: a list of sections, with checksums. A reader uses the bytes in place, as they are mapped from a file.
//
// # Format
//
// Little-endian; the body and each section in it begin at a multiple of 64 bytes:
//
//	magic     8 bytes, of the format
//	version   4 bytes, of the format
//	count     4 bytes: the number of sections, at most 4,096
//	lengths   for each section its length in bytes, 8 bytes
//	checksum  of everything before it, 8 bytes, at the end of what precedes the body
//	body      the sections, in order; gaps are zeros
//	sums      for each page of 64 KiB of the file, up to the end of the body, the checksum of what is in the body, 8 bytes;
//	          none without a body
//	sum       of the header's checksum and of sums, 8 bytes: it identifies the file
//
// Checksums are xxhash64. A section is known by its number in the order of the format; an absent one is empty. Equal
// sections give equal bytes.
//
// # Reading
//
// [Format.Open] checks the header and the sums: its cost depends little on the size. The content of sections is checked
// when a reader asks for it: pages on their first use, see [Section.Rows], or whole sections on all processors, see
// [File.Check]. No content causes a panic, or an allocation that is larger than a small part of the data.
//
// [Encoder] and [Decoder] are for sections of values of different sizes.
package sections

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
)

// The errors of [Format.Open] wrap one of these.
var (
	// ErrForeign reports data that do not begin with the magic of the format.
	ErrForeign = errors.New("not a file of this format")
	// ErrVersion reports a file of an older or newer version of the format.
	ErrVersion = errors.New("another format version")
	// ErrDamaged reports data that were truncated or changed.
	ErrDamaged = errors.New("damaged")
)

// Format is a kind of files.
type Format struct {
	Magic   string // 8 bytes
	Version uint32 // changes with the meaning of the sections
}

const (
	headSize   = 16 // of magic, version and count
	lengthSize = 8
	sumSize    = 8
	align      = 64
	pageShift  = 16
	pageSize   = 1 << pageShift
	mostCount  = 1 << 12 // sections, so that the header is smaller than a page
)

// File is a file in memory. After it is sealed, or opened, it is safe for concurrent use.
type File struct {
	data     []byte
	sections []Section
	body     int             // where it begins
	sums     []byte          // of the pages of the body
	checked  []atomic.Uint64 // a bit for each page that matched its sum
}

// Section is a section of a file. Its content is not checked.
type Section struct {
	Data    []byte
	file    *File
	checked []atomic.Uint64 // of the file
	at      int             // in the file
}

// layout has the positions of the parts of a file in its bytes.
type layout struct{ body, end, size uint64 }

// layOut computes the positions for sections of these lengths; ok is false if the file would be larger than limit.
func layOut(lengths []uint64, limit uint64) (l layout, ok bool) {
	l.body = bodyAt(uint64(len(lengths)))
	l.end = l.body
	for _, n := range lengths {
		if n > limit || l.end > limit {
			return l, false
		}
		l.end += aligned(n)
	}
	l.size = l.end + sumSize
	if l.end > l.body {
		l.size += sumSize * ((l.end + pageSize - 1) >> pageShift)
	}
	return l, l.size <= limit
}

// bodyAt returns where the body of a file with that many sections begins. Its checksum is before it.
func bodyAt(sections uint64) uint64 { return aligned(headSize + lengthSize*sections + sumSize) }

func aligned(n uint64) uint64 { return (n + align - 1) &^ (align - 1) }

// split finds the parts of data, which have this layout.
func split(data []byte, l layout, lengths []uint64) *File {
	f := &File{data: data, sections: make([]Section, len(lengths)), body: int(l.body), sums: data[l.end : l.size-sumSize]}
	f.checked = make([]atomic.Uint64, (f.pages()+63)/64)
	at := l.body
	for i, n := range lengths {
		f.sections[i] = Section{Data: data[at : at+n : at+n], file: f, checked: f.checked, at: int(at)}
		at += aligned(n)
	}
	return f
}

// Open opens a file of the format. The data are used in place, and must not change while the file is in use.
func (f Format) Open(data []byte) (*File, error) {
	if len(data) < headSize || string(data[:len(f.Magic)]) != f.Magic {
		return nil, ErrForeign
	}
	if v := binary.LittleEndian.Uint32(data[8:]); v != f.Version {
		return nil, fmt.Errorf("%w: %d, and this program reads %d", ErrVersion, v, f.Version)
	}
	count := uint64(binary.LittleEndian.Uint32(data[12:]))
	body := bodyAt(count)
	if count > mostCount || body > uint64(len(data)) || binary.LittleEndian.Uint64(data[body-sumSize:]) != xxhash.Sum64(data[:body-sumSize]) {
		return nil, fmt.Errorf("%w: the header does not match its checksum", ErrDamaged)
	}
	lengths := Numbers[uint64](data[headSize : headSize+lengthSize*count])
	l, ok := layOut(lengths, uint64(len(data)))
	if !ok || l.size != uint64(len(data)) {
		return nil, fmt.Errorf("%w: %d bytes are not the size of its sections", ErrDamaged, len(data))
	}
	x := split(data, l, lengths)
	if x.Sum() != x.sum() {
		return nil, fmt.Errorf("%w: the checksums do not match theirs", ErrDamaged)
	}
	return x, nil
}

// Bytes returns the data of the file, in its format.
func (x *File) Bytes() []byte { return x.data }

// Sum returns the checksum of the file, which identifies its content.
func (x *File) Sum() uint64 { return binary.LittleEndian.Uint64(x.data[len(x.data)-sumSize:]) }

// sum computes what Sum returns of a sound file.
func (x *File) sum() uint64 {
	return sumOf(x.data[:bodyAt(uint64(len(x.sections)))], x.sums)
}

// sumOf returns the checksum of a file from its header and the checksums of its pages.
func sumOf(header, pages []byte) uint64 {
	var h xxhash.Digest
	h.Reset()
	_, _ = h.Write(header[len(header)-sumSize:])
	_, _ = h.Write(pages)
	return h.Sum64()
}

// Sections returns the number of sections.
func (x *File) Sections() int { return len(x.sections) }

// Section returns a section by its number; an empty one if the file has fewer.
func (x *File) Section(i int) *Section {
	if i >= len(x.sections) {
		return &Section{file: x}
	}
	return &x.sections[i]
}

// Get returns the unchecked content of a section by its number; nil if the file has fewer.
func (x *File) Get(i int) []byte { return x.Section(i).Data }

// Rows returns n rows of a size, starting at row from, after checking the pages that they lie in and that were not checked
// before; ok is false if the rows do not exist or are damaged.
func (s *Section) Rows(size, from, n int) (rows []byte, ok bool) {
	if from < 0 || n < 0 || from > len(s.Data)/size || n > len(s.Data)/size-from {
		return nil, false
	}
	from, n = from*size, n*size
	return s.Data[from : from+n : from+n], s.Sound(from, from+n)
}

// Sound reports whether the pages of Data[from:to] match their checksums. A page that does is not compared again.
func (s *Section) Sound(from, to int) bool {
	if from >= to {
		return true
	}
	for page := (s.at + from) >> pageShift; page <= (s.at+to-1)>>pageShift; page++ {
		if s.checked[page>>6].Load()&(1<<(page&63)) == 0 && !s.file.check(page) {
			return false
		}
	}
	return true
}

func (x *File) pages() int { return len(x.sums) / sumSize }

// page returns the bytes of a page that are in the body.
func (x *File) page(n int) []byte {
	end := len(x.data) - len(x.sums) - sumSize
	return x.data[max(n<<pageShift, x.body):min((n+1)<<pageShift, end)]
}

// check compares a page with its checksum.
func (x *File) check(page int) bool {
	if xxhash.Sum64(x.page(page)) != binary.LittleEndian.Uint64(x.sums[page*sumSize:]) {
		return false
	}
	x.checked[page>>6].Or(1 << (page & 63))
	return true
}

// Check compares sections with their checksums, also pages that were compared before.
func (x *File) Check(sections ...int) error {
	for _, i := range sections {
		if s := x.Section(i); len(s.Data) > 0 && !x.each(s.at>>pageShift, (s.at+len(s.Data)-1)>>pageShift+1, x.check) {
			return fmt.Errorf("%w: section %d does not match its checksums", ErrDamaged, i)
		}
	}
	return nil
}

// Verify compares the whole body with its checksums.
func (x *File) Verify() error {
	if !x.each(0, x.pages(), x.check) {
		return fmt.Errorf("%w: the sections do not match their checksums", ErrDamaged)
	}
	return nil
}

// each calls do for pages on all processors, and reports whether it returned true for all of them.
func (x *File) each(from, to int, do func(page int) bool) bool {
	const some = 16 // that a goroutine takes at a time
	var next, wrong atomic.Int64
	next.Store(int64(from))
	work := func() {
		for first := int(next.Add(some)) - some; first < to; first = int(next.Add(some)) - some {
			for page := first; page < min(first+some, to); page++ {
				if !do(page) {
					wrong.Store(1)
				}
			}
		}
	}
	var others sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), (to-from+some-1)/some) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
	return wrong.Load() == 0
}
