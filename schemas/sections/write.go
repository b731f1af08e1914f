package sections

import (
	"encoding/binary"
	"fmt"
	"math"
	"unsafe"

	"github.com/cespare/xxhash/v2"
)

// New returns a file with sections of these lengths, filled with zeros, in memory that is aligned as a mapped file.
// The caller fills the sections and then seals the file.
func (f Format) New(lengths ...uint64) *File {
	l := mustLayOut(lengths)
	x := split(Room(int(l.size)), l, lengths)
	copy(x.data, f.header(lengths))
	return x
}

// Room allocates bytes that begin at a multiple of 64 in memory.
func Room(n int) []byte {
	room := make([]byte, n+align)
	skip := -int(uintptr(unsafe.Pointer(&room[0]))) & (align - 1)
	return room[skip : skip+n : skip+n]
}

// mustLayOut is layOut without a limit.
func mustLayOut(lengths []uint64) layout {
	l, ok := layOut(lengths, math.MaxInt64/2)
	if !ok || len(lengths) > mostCount {
		panic("sections: too many, or too large for any memory") // no caller can have such sections
	}
	return l
}

// header returns the part before the body.
func (f Format) header(lengths []uint64) []byte {
	b := make([]byte, bodyAt(uint64(len(lengths))))
	copy(b, f.Magic)
	binary.LittleEndian.PutUint32(b[8:], f.Version)
	binary.LittleEndian.PutUint32(b[12:], uint32(len(lengths)))
	copy(b[headSize:], Raw(lengths))
	sum := b[len(b)-sumSize:]
	binary.LittleEndian.PutUint64(sum, xxhash.Sum64(b[:len(b)-sumSize]))
	return b
}

// Seal computes the checksums of a new file.
func (x *File) Seal() {
	x.each(0, x.pages(), func(page int) bool {
		binary.LittleEndian.PutUint64(x.sums[page*sumSize:], xxhash.Sum64(x.page(page)))
		x.checked[page>>6].Or(1 << (page & 63))
		return true
	})
	binary.LittleEndian.PutUint64(x.data[len(x.data)-sumSize:], x.sum())
}

// Encode returns a file with these sections.
func (f Format) Encode(sections ...[]byte) *File {
	lengths := make([]uint64, len(sections))
	for i, s := range sections {
		lengths[i] = uint64(len(s))
	}
	x := f.New(lengths...)
	for i, s := range sections {
		copy(x.sections[i].Data, s)
	}
	x.Seal()
	return x
}

// Content is the content of a section to write. The zero value is empty.
type Content struct {
	Length uint64
	// Write hands out Length bytes, in pieces, each of them valid during the call.
	Write func(to func([]byte) error) error
}

// Of returns the content that consists of some pieces.
func Of(pieces ...[]byte) Content {
	c := Content{Write: func(to func([]byte) error) error {
		for _, p := range pieces {
			if err := to(p); err != nil {
				return err
			}
		}
		return nil
	}}
	for _, p := range pieces {
		c.Length += uint64(len(p))
	}
	return c
}

// Content returns a file with these sections as the content of a section. It writes the sections once, without holding
// the file in memory. Its error is that of a section, or of the function that gets the bytes.
func (f Format) Content(sections ...Content) Content {
	lengths := make([]uint64, len(sections))
	for i, s := range sections {
		lengths[i] = s.Length
	}
	l := mustLayOut(lengths)
	return Content{Length: l.size, Write: func(to func([]byte) error) error {
		header := f.header(lengths)
		err := to(header)
		w := &pageWriter{to: to, filled: len(header)}
		w.page.Reset()
		for i := 0; i < len(sections) && err == nil; i++ {
			err = w.section(sections[i])
		}
		if err != nil {
			return err
		}
		if w.filled > 0 && l.end > l.body {
			w.end()
		}
		return to(binary.LittleEndian.AppendUint64(w.sums, sumOf(header, w.sums)))
	}}
}

// pageWriter passes the body on, and computes the checksums of its pages.
type pageWriter struct {
	to     func([]byte) error
	page   xxhash.Digest
	filled int // bytes of the page, with those of the header
	sums   []byte
}

func (w *pageWriter) section(c Content) error {
	if c.Length == 0 {
		return nil
	}
	written := uint64(0)
	err := c.Write(func(b []byte) error {
		written += uint64(len(b))
		return w.write(b)
	})
	if err == nil && written != c.Length {
		err = fmt.Errorf("a section has %d bytes, and %d were announced", written, c.Length)
	}
	if err == nil {
		err = w.write(make([]byte, aligned(written)-written))
	}
	return err
}

func (w *pageWriter) write(b []byte) error {
	for rest := b; len(rest) > 0; {
		n := min(len(rest), pageSize-w.filled)
		_, _ = w.page.Write(rest[:n])
		if w.filled += n; w.filled == pageSize {
			w.end()
		}
		rest = rest[n:]
	}
	return w.to(b)
}

// end completes a page.
func (w *pageWriter) end() {
	w.sums, w.filled = binary.LittleEndian.AppendUint64(w.sums, w.page.Sum64()), 0
	w.page.Reset()
}
