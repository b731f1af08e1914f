package state

import (
	"encoding/binary"
	"os"
	"slices"

	"github.com/cespare/xxhash/v2"
)

// cacheReader reads single records of the cache.
type cacheReader struct {
	*os.File
	decoder *decoder
	window  []byte // what was read last, which begins at from
	from    int64
	ahead   int // how many bytes are read at once
}

// One record that is read alone, and records that are read in their order.
const readOne, readMany = 4 << 10, 128 << 10

// bytes returns n bytes of the cache, valid until the next call; nil if they are not there.
func (c *cacheReader) bytes(at int64, n int) []byte {
	if at < c.from || at+int64(n) > c.from+int64(len(c.window)) {
		size := max(n, c.ahead)
		if cap(c.window) < size {
			c.window = make([]byte, size)
		}
		got, _ := c.ReadAt(c.window[:size], at) // less at the end of the file
		if c.window, c.from = c.window[:got], at; got < n {
			return nil
		}
	}
	return c.window[at-c.from:][:n]
}

// read returns the cached content of a file; nil if it does not match the base.
func (c *cacheReader) read(was baseFile) *file {
	head := c.bytes(int64(was.at), recordHeader)
	if was.at == 0 || head == nil {
		return nil
	}
	size, sum := binary.LittleEndian.Uint32(head), binary.LittleEndian.Uint32(head[4:])
	if size > maxBlock {
		return nil
	}
	record := slices.Clone(c.bytes(int64(was.at)+recordHeader, int(size))) // decoded, it is pointed into
	if record == nil || sum != uint32(xxhash.Sum64(record)) {
		return nil
	}
	c.decoder.B, c.decoder.Bad = record, false
	f := c.decoder.file()
	if c.decoder.Bad || f.racy || hashOf(f.path) != was.path || f.content() != was.content {
		return nil
	}
	f.at = int64(was.at)
	return f
}

// ownedFiles reads the files of dormant objects from the cache.
type ownedFiles struct {
	base    *base
	records *cacheReader
	first   []int32 // by owner: where its files begin in files; nil until they are asked for
	files   []int32 // the indices of files in base, by owner
}

// of returns the files of the object with that index; nil if one of them is not there.
func (o *ownedFiles) of(i int) (files []*file) {
	o.sort()
	for _, at := range o.files[o.first[i]:o.first[i+1]] {
		f := o.records.read(o.base.file(int(at)))
		if f == nil {
			return nil
		}
		files = append(files, f)
	}
	return files
}

// sort sorts the files of the base by the dormant object that owns them.
func (o *ownedFiles) sort() {
	if o.first != nil {
		return
	}
	b := o.base
	o.first = make([]int32, len(b.thawed)+len(b.recent)+2)
	each := func(visit func(i, owner int)) {
		for i := range b.len() {
			if owner := b.owner(i); owner > 0 && !b.thawedFile(i) {
				visit(i, owner)
			}
		}
	}
	each(func(_, owner int) { o.first[owner+1]++ })
	for n := 1; n < len(o.first); n++ {
		o.first[n] += o.first[n-1]
	}
	o.files = make([]int32, o.first[len(o.first)-1])
	each(func(i, owner int) {
		o.files[o.first[owner]] = int32(i)
		o.first[owner]++
	})
}
