package state

import (
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"sync"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"
	"github.com/gofrs/flock"
	"reconcile.dev/reconcile/schemas/sections"
	"reconcile.dev/reconcile/state/filelock"
	"reconcile.dev/reconcile/state/regular"
)

// The cache holds the decoded files of earlier processes, so that an unchanged tree is not decoded again. It is one
// file: a header that names the program that wrote it, then blocks, each with its length and hash. A block holds
// records, each of one file of the tree with its stat; a later record of a path replaces an earlier one. A process
// appends the files that it had to decode and never changes existing blocks, so that several processes can append.
//
// The cache is disposable. An incomplete block ends the cache, a header of another program makes it empty, and in
// both cases it is written again from the start. It is not synced.

// cacheVersion changes with the format and with the meaning of records.
const cacheVersion = "reconcile tree cache 14\n"

const (
	cacheHeader = len(cacheVersion) + 8 // the hash of the other inputs of decoding
	blockHeader = 4 + 8                 // length and hash of the payload
	maxBlock    = 1 << 30
	fullBlock   = 512 << 10 // a block of this size gets no more records
)

func newCache(s *Store) *cache {
	c := &cache{store: s, inputs: map[string]*inputFile{}}
	c.spare.New = func() any { return new(encoder) }
	return c
}

// key is the hash of everything that affects decoding, except the files themselves.
func (c *cache) key() uint64 {
	h := xxhash.New()
	add := func(s string) {
		_, _ = h.WriteString(s)
		_, _ = h.Write([]byte{0})
	}
	add(c.store.opts.Build)
	for _, k := range c.store.opts.Kinds {
		add(k.Name)
		add(k.Plural)
	}
	_, _ = h.Write(binary.AppendUvarint(nil, uint64(c.store.settings.Limits.FileSize)))
	add(c.store.settings.Folders.State)
	return h.Sum64()
}

func (c *cache) header() []byte {
	return binary.LittleEndian.AppendUint64([]byte(cacheVersion), c.key())
}

// load returns the files in the cache, by path: all, or for a kind of objects the spec files, of which those of other kinds have only
// the names of their objects. Damage makes the result smaller, or empty.
func (c *cache) load(kind string) map[string]*file {
	if c.store.opts.NoCache {
		return nil
	}
	f, _, err := regular.Open(c.store.root, cachePath)
	if err != nil {
		c.broken = true
		return nil
	}
	defer f.Close()
	blocks, whole := c.blocks(f)
	readable := true
	if kind != "" {
		blocks, readable = ofKind(f, blocks, blockSpecs)
	}
	parts, ok := c.decodeBlocks(f, blocks, kind)
	c.broken = !whole || !readable || !ok
	return c.join(parts)
}

// blocks finds the blocks of the file by their headers; whole is false if other data follows.
func (c *cache) blocks(f *os.File) (list []block, whole bool) {
	size, err := f.Seek(0, io.SeekEnd)
	head := make([]byte, cacheHeader)
	if _, err2 := f.ReadAt(head, 0); err != nil || err2 != nil || string(head) != string(c.header()) {
		return nil, false
	}
	at := int64(cacheHeader)
	for at+blockHeader <= size {
		var h [blockHeader]byte
		if _, err := f.ReadAt(h[:], at); err != nil {
			return list, false
		}
		b := block{at + blockHeader, int(binary.LittleEndian.Uint32(h[:])), binary.LittleEndian.Uint64(h[4:])}
		if b.size == 0 || b.size > maxBlock || b.at+int64(b.size) > size {
			return list, false
		}
		list = append(list, b)
		at = b.at + int64(b.size)
	}
	return list, at == size
}

// decodeBlocks decodes blocks in parallel and returns the parts before the first damaged one.
func (c *cache) decodeBlocks(f *os.File, blocks []block, kind string) (parts []cachePart, ok bool) {
	parts = make([]cachePart, len(blocks))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(workers(), len(blocks)) {
		wg.Go(func() {
			d := newDecoder(c.store)
			d.only = kind
			for {
				i := int(next.Add(1)) - 1
				if i >= len(blocks) {
					return
				}
				parts[i] = d.block(f, blocks[i])
			}
		})
	}
	wg.Wait()
	for i, p := range parts {
		if !p.ok {
			return parts[:i], false
		}
	}
	return parts, true
}

// join merges the parts, later ones over earlier ones.
func (c *cache) join(parts []cachePart) map[string]*file {
	n := 0
	for _, p := range parts {
		n += len(p.files)
	}
	files := make(map[string]*file, n)
	c.records = 0
	for _, p := range parts {
		c.records += len(p.files) + len(p.inputs)
		for _, f := range p.files {
			files[f.path] = f
		}
		maps.Copy(c.inputs, p.inputs)
	}
	return files
}

// write appends a block, unless it is empty or the cache is not writable.
func (c *cache) write(e *encoder) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.writeLocked(e)
}

func (c *cache) writeLocked(e *encoder) {
	if max(cap(e.B), cap(e.packed)) <= 4*fullBlock { // do not keep the memory of a huge record
		defer c.spare.Put(e)
	}
	if c.store.opts.NoCache || e.records == 0 || c.out == nil && !c.openOut() {
		return
	}
	c.records += e.records
	payload := e.B[blockHeader:]
	binary.LittleEndian.PutUint32(e.B, uint32(len(payload)))
	binary.LittleEndian.PutUint64(e.B[4:], xxhash.Sum64(payload))
	if _, err := c.out.Write(e.B); err != nil {
		c.broken = true
		return
	}
	end, err := c.out.Seek(0, io.SeekCurrent)
	for i, f := range e.files {
		if f.at = 0; err == nil {
			f.at = end - int64(len(e.B)-e.starts[i])
		}
	}
}

// openOut opens the file to append to: the cache, or a new one if the old one is not usable.
func (c *cache) openOut() bool {
	if c.store.ensureLocal(cacheDir) != nil {
		return false
	}
	if !c.broken {
		if c.out = c.openOld(); c.out != nil {
			return true
		}
	}
	f, l := c.openNew()
	if f == nil {
		return false
	}
	if _, err := f.Write(c.header()); err != nil {
		_ = closeLocked(f, l)
		return false
	}
	c.out, c.lock, c.new, c.broken, c.records = f, l, true, false, 0
	if _, err := c.store.root.Lstat(cachePath); errors.Is(err, fs.ErrNotExist) { // what a first load reads is kept, should it be killed
		c.new = c.store.root.Rename(cacheTemp, cachePath) != nil
	}
	return true
}

// openNew opens the file for a rewrite of the cache, or returns nil if another process does that. The file has a fixed
// name, so that one of a killed process is used again; its writer holds a lock on it.
func (c *cache) openNew() (*os.File, *flock.Flock) {
	f, _, err := regular.OpenFile(c.store.root, cacheTemp, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return nil, nil
	}
	l, err := filelock.Try(f)
	if err == nil && l != nil && c.isAt(f, cacheTemp) && f.Truncate(0) == nil {
		return f, l
	}
	_ = closeLocked(f, l)
	return nil, nil
}

// isAt reports whether f is still the file of that name: another process may have replaced the cache.
func (c *cache) isAt(f *os.File, p string) bool {
	is, err := f.Stat()
	at, err2 := c.store.root.Lstat(p)
	return err == nil && err2 == nil && os.SameFile(is, at)
}

// openOld opens the cache to append to it, or returns nil if it is not, or no longer, a cache of this program.
func (c *cache) openOld() *os.File {
	f, _, err := regular.OpenFile(c.store.root, cachePath, os.O_RDWR|os.O_APPEND, 0)
	if err != nil {
		return nil
	}
	head := make([]byte, cacheHeader)
	if _, err := f.ReadAt(head, 0); err != nil || string(head) != string(c.header()) {
		_ = f.Close()
		return nil
	}
	return f
}

// finishLoad ends the writing of a load with the given model, and compacts the cache if most of its records are replaced.
func (c *cache) finishLoad(m *model) {
	if c.store.opts.NoCache {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.close()
	if live := len(m.files) + len(m.inputs.files); m.dormant == nil && c.records > 2*live+1000 {
		c.compact(m)
	}
}

// flush ends the writing of files that were read outside of a load.
func (c *cache) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.close()
}

// close closes the output file, and puts a new one in its place before it releases the lock on it.
func (c *cache) close() {
	if c.out == nil {
		return
	}
	if c.new && c.broken {
		_ = c.store.root.Remove(cacheTemp)
	} else if c.new {
		c.broken = c.store.root.Rename(cacheTemp, cachePath) != nil
	}
	c.broken = closeLocked(c.out, c.lock) != nil || c.broken
	c.out, c.lock, c.new = nil, nil, false
}

// compact copies the records that the model still uses to a new file.
func (c *cache) compact(m *model) {
	f, _, err := regular.Open(c.store.root, cachePath)
	if err != nil {
		return
	}
	defer f.Close()
	blocks, _ := c.blocks(f)
	if c.broken = true; !c.openOut() {
		return
	}
	for _, b := range blocks {
		payload, err := b.read(f)
		if err != nil {
			break
		}
		c.copyLive(m, payload)
	}
	c.close()
}

// copyLive writes the records of a block that the model still uses to the new cache.
func (c *cache) copyLive(m *model, payload []byte) {
	e := c.encoder(payload[0])
	_ = eachRecord(payload, func(record []byte, start int) {
		d := decoder{Decoder: sections.Decoder{B: record}}
		p := d.Shared()
		live := false
		if payload[0] == blockInputs {
			f := m.inputs.files[p]
			live = f != nil && f.stat == d.stat()
		} else if f := m.files[p]; f != nil {
			d.Byte()
			if live = f.stat == d.stat() && f.racy == d.Bool(); live {
				e.startFile(f)
			}
		}
		if live {
			e.B = append(e.B, payload[start:start+recordHeader+len(record)]...)
			e.records++
		}
	})
	c.writeLocked(e)
}

// encoder returns an empty encoder, which may be a reused one; write takes it back.
func (c *cache) encoder(kind byte) *encoder {
	e := c.spare.Get().(*encoder)
	e.B = append(e.B[:0], make([]byte, blockHeader)...)
	e.B = append(e.B, kind)
	e.records, e.files, e.starts = 0, e.files[:0], e.starts[:0]
	return e
}

// loadInputs reads the cached data about inputs.
func (c *cache) loadInputs(f *os.File, blocks []block) bool {
	some, readable := ofKind(f, blocks, blockInputs)
	if !readable {
		return false
	}
	parts, ok := c.decodeBlocks(f, some, "")
	for _, p := range parts {
		maps.Copy(c.inputs, p.inputs)
	}
	return ok
}

// ofKind returns the blocks of a kind.
func ofKind(f *os.File, blocks []block, kind byte) (some []block, ok bool) {
	for _, b := range blocks {
		var is [1]byte
		if _, err := f.ReadAt(is[:], b.at); err != nil {
			return some, false
		}
		if is[0] == kind {
			some = append(some, b)
		}
	}
	return some, true
}
