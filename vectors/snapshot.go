package vectors

import (
	"encoding/binary"
	"encoding/json"

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
	sectionLoose
	sectionLooseNames
	sectionFacts
	sectionDelta
	sectionPlaces
	sectionInputs
)

// lazy sections are not checked when one is opened.
func lazy(kind uint64) bool { return kind == sectionWords || kind == sectionVectors }

// Meta is what a snapshot says of itself.
type Meta struct {
	// Model made the vectors, Dims is how many numbers they have. "" if there are none.
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
	// late is what is only put together when it is written, instead of data; nil for what is in memory.
	late *knn.Assembly
	sum  uint64 // of one that was read, as the table has it
}

// sound reports whether a section that was read is what was written.
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

// get is a section; nil if there is none.
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

// fill hands out what so many bytes lack to whole pages.
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

// blank reports whether there are zeros only.
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
