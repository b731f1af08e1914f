package state

import (
	"encoding/binary"
	"os"
	"slices"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/state/regular"
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
	if record == nil {
		return nil
	}
	return c.decode(record, sum, was)
}

// decode decodes a record, without the records of a ledger if the decoder leaves those.
func (c *cacheReader) decode(record []byte, sum uint32, was baseFile) *file {
	c.decoder.B, c.decoder.Bad = record, false
	f := c.decoder.file()
	hashed := len(c.decoder.B) // bytes at the end that have a hash of their own
	if l, ok := f.body.(*Ledger); ok {
		hashed += len(l.packed)
	}
	if c.decoder.Bad || sum != uint32(xxhash.Sum64(record[:len(record)-hashed])) || f.racy || hashOf(f.path) != was.path || f.content() != was.content {
		return nil
	}
	f.at = int64(was.at)
	return f
}

// ledgerHead is how much of a ledger's record is read at first. Without what it rejects, and its records, it has much less.
const ledgerHead = 512

// readLedger is read for a ledger whose records are read when they are asked for. It returns nil, too, if its record is short.
func (c *cacheReader) readLedger(was baseFile) *file {
	head := c.bytes(int64(was.at), recordHeader+ledgerHead)
	if was.at == 0 || head == nil {
		return nil
	}
	size, sum := int(binary.LittleEndian.Uint32(head)), binary.LittleEndian.Uint32(head[4:])
	if size < ledgerHead || size > maxBlock {
		return nil
	}
	c.decoder.leave = true
	f := c.decode(slices.Clone(head[recordHeader:]), sum, was)
	c.decoder.leave = false
	if f == nil {
		return nil
	}
	l, ok := f.body.(*Ledger)
	if !ok || l.size > size {
		return nil
	}
	end, store := int64(was.at)+recordHeader+int64(size), c.decoder.store
	l.read = func() []byte {
		records := make([]byte, l.size)
		if _, err := c.ReadAt(records, end-int64(l.size)); err == nil && xxhash.Sum64(records) == l.hash {
			return records
		}
		return store.ledgerRecords(l.Path)
	}
	return f
}

// ledgerRecords returns the encoded records of a ledger that the cache does not have as it should. What else the cache has is not used any more.
func (s *Store) ledgerRecords(p string) []byte {
	s.needsFullLoad.Store(true)
	data, err := regular.Read(s.root, p)
	if err != nil {
		return nil
	}
	l, err := ParseLedger(p, data)
	if err != nil {
		return nil
	}
	return l.packed
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
