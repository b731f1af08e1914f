package vectors

import (
	"encoding/binary"
	"encoding/json"
	"runtime"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/vectors/knn"
)

// A snapshot is a header and sections, each at a multiple of 4096 bytes, little-endian:
//
//	magic    "RECINDEX"
//	version  uint32
//	count    uint32, of sections
//	table    for each section: kind uint64, offset uint64, length uint64, sum of it uint64
//	sum      xxhash64 of all that is before
//
// The sum of a section is the xxhash64 of those of its pieces, so that all processors compare a large one.
//
// The sums of sections are checked when one is opened that is not known to be sound, but for those of the words, which are
// checked page by page as they are used, and of the vectors, see [Stored.Confirm]; Verify checks these, too.
const (
	magic     = "RECINDEX"
	version   = 12
	pageSize  = 4096
	tableAt   = 16
	rowSize   = 32
	mostParts = 64
)

// The kinds of sections. Their numbers are in snapshots.
const (
	sectionMeta = iota + 1
	sectionGraph
	sectionWords
	sectionVectors
	sectionEmbedder
	sectionTopics
	sectionHoldings
	sectionAliases
	sectionUnresolved
	sectionUnresolvedNames
	sectionFacts
	sectionDelta
	sectionPlaces
	sectionInputs
)

// lazy sections are not checked when a snapshot is opened.
func lazy(kind uint64) bool { return kind == sectionWords || kind == sectionVectors }

// Meta is the metadata of a snapshot.
type Meta struct {
	// Model is the model of the vectors, Dims their dimension. "" if the snapshot has no vectors.
	Model string `json:"model,omitempty"`
	Dims  int    `json:"dims,omitempty"`
	// Inputs is the digest of the inputs, see [DigestInputs].
	Inputs uint64 `json:"inputs"`
	// Tools names helpers that the inputs were made with, and their versions.
	Tools string `json:"tools,omitempty"`
	// Base is the sum of the header of the snapshot that a delta belongs to.
	Base uint64 `json:"base,omitempty"`
}

func (m *Meta) encode() []byte {
	b, err := json.Marshal(m)
	if err != nil {
		panic(err) // strings and numbers
	}
	return b
}

type section struct {
	kind uint64
	data []byte
	// late is assembled only when the section is written, instead of data; nil for a section in memory.
	late *knn.Assembly
	sum  uint64 // checksum of a section that was read, from the table
}

// sound reports whether a section that was read matches its checksum.
func (s *section) sound() bool { return sumOf(s.data) == s.sum }

// write hands out what the section has.
func (s *section) write(to func([]byte) error) error {
	if s.late != nil {
		return s.late.Write(to)
	}
	return to(s.data)
}

// size is how many bytes it has.
func (s *section) size() int {
	if s.late != nil {
		return int(s.late.Size())
	}
	return len(s.data)
}

// container is a file of sections that was read or is to be written.
type container struct {
	sections []section
	sum      uint64 // of the header: what the file is known by
}

func (c *container) add(kind uint64, data []byte) {
	c.sections = append(c.sections, section{kind: kind, data: data})
}

// get returns a section; nil if it does not exist.
func (c *container) get(kind uint64) []byte {
	for _, s := range c.sections {
		if s.kind == kind {
			return s.data
		}
	}
	return nil
}

// header lays the sections out and sets the sum. The error is that of a late section.
func (c *container) header() ([]byte, error) {
	b := append([]byte(magic), 0, 0, 0, 0, 0, 0, 0, 0)
	binary.LittleEndian.PutUint32(b[8:], version)
	binary.LittleEndian.PutUint32(b[12:], uint32(len(c.sections)))
	at := uint64(pages(tableAt + rowSize*len(c.sections) + 8))
	for i := range c.sections {
		s := &c.sections[i]
		sum := &summing{}
		if err := s.write(sum.write); err != nil {
			return nil, err
		}
		for _, n := range []uint64{s.kind, at, uint64(s.size()), sum.sum()} {
			b = binary.LittleEndian.AppendUint64(b, n)
		}
		at += uint64(pages(s.size()))
	}
	c.sum = xxhash.Sum64(b)
	return binary.LittleEndian.AppendUint64(b, c.sum), nil
}

// pages rounds up to whole pages.
func pages(n int) int { return (n + pageSize - 1) / pageSize * pageSize }

// write hands out all of it, in the order in which it is to be written.
func (c *container) write(to func([]byte) error) error {
	header, err := c.header()
	if err == nil {
		err = to(header)
	}
	if err == nil {
		err = fill(to, len(header))
	}
	for i := range c.sections {
		if err == nil {
			err = c.sections[i].write(to)
		}
		if err == nil {
			err = fill(to, c.sections[i].size())
		}
	}
	return err
}

// parts is all of a container without late sections.
func (c *container) parts() (out [][]byte) {
	_ = c.write(func(b []byte) error {
		out = append(out, b)
		return nil
	})
	return out
}

// fill writes the padding after written bytes to the end of the page.
func fill(to func([]byte) error, written int) error {
	return to(make([]byte, pages(written)-written))
}

// openContainer finds the sections in data, and checks those that do not check themselves, unless they are known to be
// sound.
func openContainer(data []byte, sound bool) (*container, error) {
	if len(data) < tableAt || string(data[:8]) != magic || binary.LittleEndian.Uint32(data[8:]) != version {
		return nil, ErrDamaged
	}
	n := int(binary.LittleEndian.Uint32(data[12:]))
	end := tableAt + rowSize*n
	if n > mostParts || len(data) < end+8 || binary.LittleEndian.Uint64(data[end:]) != xxhash.Sum64(data[:end]) {
		return nil, ErrDamaged
	}
	c := &container{sum: xxhash.Sum64(data[:end])}
	whole := uint64(pages(end + 8))
	for i := range n {
		row := data[tableAt+rowSize*i:]
		field := func(k int) uint64 { return binary.LittleEndian.Uint64(row[8*k:]) }
		at, size := field(1), field(2)
		if at != whole || at > uint64(len(data)) || size > uint64(len(data))-at {
			return nil, ErrDamaged
		}
		whole += uint64(pages(int(size)))
		s := section{kind: field(0), data: data[at : at+size : at+size], sum: field(3)}
		if !sound && !lazy(s.kind) && !s.sound() {
			return nil, ErrDamaged
		}
		c.sections = append(c.sections, s)
	}
	if whole != uint64(len(data)) {
		return nil, ErrDamaged
	}
	return c, nil
}

// verify checks the sums of all sections, and that there is nothing between them.
func (c *container) verify(data []byte) error {
	used := tableAt + rowSize*len(c.sections) + 8
	for i, s := range c.sections {
		row := data[tableAt+rowSize*i:]
		at := int(binary.LittleEndian.Uint64(row[8:]))
		if !s.sound() || !blank(data[used:at]) {
			return ErrDamaged
		}
		used = at + len(s.data)
	}
	if !blank(data[used:]) {
		return ErrDamaged
	}
	return nil
}

// blank reports whether all bytes are zero.
func blank(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

func (c *container) meta() (m Meta, err error) {
	if json.Unmarshal(c.get(sectionMeta), &m) != nil {
		return Meta{}, ErrDamaged
	}
	return m, nil
}

// sumSize is how large a piece of a section is that has a sum of its own.
const sumSize = 1 << 20

// summing computes the checksum of a section that is written in parts. The zero value is that of no bytes.
type summing struct {
	piece  xxhash.Digest
	length int    // of the piece
	sums   []byte // of the pieces before
}

// write never fails.
func (s *summing) write(data []byte) error {
	for len(data) > 0 {
		if s.length == 0 {
			s.piece.Reset()
		}
		n := min(len(data), sumSize-s.length)
		_, _ = s.piece.Write(data[:n])
		if s.length += n; s.length == sumSize {
			s.end()
		}
		data = data[n:]
	}
	return nil
}

// end completes a piece.
func (s *summing) end() {
	s.sums, s.length = binary.LittleEndian.AppendUint64(s.sums, s.piece.Sum64()), 0
}

func (s *summing) sum() uint64 {
	if s.length > 0 {
		s.end()
	}
	return xxhash.Sum64(s.sums)
}

// sumOf returns the checksum of a section, computed on all processors.
func sumOf(data []byte) uint64 {
	pieces := (len(data) + sumSize - 1) / sumSize
	sums := make([]byte, 8*pieces)
	var next atomic.Int64
	work := func() {
		for i := int(next.Add(1)) - 1; i < pieces; i = int(next.Add(1)) - 1 {
			piece := data[i*sumSize : min((i+1)*sumSize, len(data))]
			binary.LittleEndian.PutUint64(sums[8*i:], xxhash.Sum64(piece))
		}
	}
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), pieces) - 1 {
		workers.Go(work)
	}
	work()
	workers.Wait()
	return xxhash.Sum64(sums)
}

// alignedRoom allocates room for a snapshot, aligned as in a mapped file.
func alignedRoom(n int) []byte {
	const line = 64
	room := make([]byte, n+line)
	skip := -int(uintptr(unsafe.Pointer(&room[0]))) & (line - 1)
	return room[skip : skip+n : skip+n]
}

// Write hands out the bytes, piece by piece; a piece is valid during the call. The error is that of to, or of the Scratch.
func (s *Snapshot) Write(to func([]byte) error) error { return s.parts.write(to) }
