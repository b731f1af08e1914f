package index

import (
	"encoding/binary"
	"strings"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors/source"
)

const filesCache = ".reconcile/cache/index-files"

// fileCache caches the digests of files under their stat data, by folder, so that it can be compared with a listed folder
// without a table of all files. The format is cacheHead; one folder after the other, each as its name, the size of its rows
// in bytes, and the rows, see appendRow; at the end the xxhash64 of everything before. Numbers are uvarints or, for
// digests, 8 bytes, little-endian.
type fileCache struct {
	known map[string]string // rows of the last scan
	size  int               // total size of known
	now   []byte            // rows of this scan
	count int               // number of folders in now
	same  bool              // now equals the known rows
}

// cacheHead identifies the format.
const cacheHead = "files 2\n"

// singles is the key of files that are not part of a folder's scan; no folder has this name.
const singles = "\x00"

// rows are the remaining rows of a folder, sorted by name.
type rows struct {
	left   string
	passed bool // a row was skipped: its file is gone
}

// appendRow appends a file: its name with its length, its stamp and its digest; and, for a Go file, its context. The first
// row of a folder whose contexts are all known has no name, and holds the folder's key and declarations.
func appendRow(to []byte, name string, f *file) []byte {
	to = binary.AppendUvarint(to, uint64(len(name)))
	to = append(to, name...)
	to = binary.LittleEndian.AppendUint64(to, f.stamp)
	to = binary.LittleEndian.AppendUint64(to, f.digest)
	if isGo(name) {
		to = binary.LittleEndian.AppendUint64(to, f.context.Declared)
		to = binary.LittleEndian.AppendUint64(to, f.context.Head)
	}
	return to
}

// find continues the search from the last result: names must be requested in order.
func (r *rows) find(name string) (f file, ok bool) {
	for len(r.left) > 0 {
		n, rest, ok := cutNumber(r.left)
		size := 16
		if ok && n <= len(rest) && isGo(rest[:n]) {
			size = 32
		}
		if !ok || n+size > len(rest) {
			r.left, r.passed = "", true // corrupt
			break
		}
		order := strings.Compare(rest[:n], name)
		if order > 0 {
			break
		}
		r.left = rest[n+size:]
		if order < 0 {
			r.passed = true
			continue
		}
		numbers := rest[n : n+size]
		f.stamp, f.digest = numberAt(numbers, 0), numberAt(numbers, 1)
		if size > 16 {
			f.context = source.Context{Declared: numberAt(numbers, 2), Head: numberAt(numbers, 3)}
		}
		return f, true
	}
	return file{}, false
}

func numberAt(s string, i int) uint64 { return binary.LittleEndian.Uint64([]byte(s[8*i : 8*i+8])) }

// cutNumber cuts a uvarint below 2^31 off.
func cutNumber(s string) (n int, rest string, ok bool) {
	for i := 0; i < len(s) && i < 5; i++ {
		n |= int(s[i]&0x7f) << (7 * i)
		if s[i] < 0x80 {
			return n, s[i+1:], n < 1<<31
		}
	}
	return 0, "", false
}

// load reads the cache. A damaged cache is empty.
func (c *fileCache) load(store *state.Store) {
	c.known = map[string]string{}
	b, _, err := store.ReadFile(filesCache, 1<<30)
	if err != nil || len(b) < 8 || xxhash.Sum64(b[:len(b)-8]) != binary.LittleEndian.Uint64(b[len(b)-8:]) {
		return
	}
	c.size = len(b)
	s, ok := strings.CutPrefix(string(b[:len(b)-8]), cacheHead)
	for ok && s != "" {
		n, rest, ok := cutNumber(s)
		if !ok || n > len(rest) {
			return // corrupt
		}
		size, more, ok := cutNumber(rest[n:])
		if !ok || size > len(more) {
			return
		}
		c.known[rest[:n]] = more[:size]
		s = more[size:]
	}
}

// of returns the cached rows of a folder.
func (c *fileCache) of(dir string) *rows { return &rows{left: c.known[dir]} }

// begin clears the rows of this scan.
func (c *fileCache) begin() { c.now, c.count, c.same = make([]byte, 0, c.size+c.size/16), 0, true }

// put records the rows of a folder.
func (c *fileCache) put(dir string, now []byte) {
	if string(now) != c.known[dir] {
		c.same = false
	}
	putRows(c, dir, now)
}

// keep records that a folder's rows did not change.
func (c *fileCache) keep(dir string) { putRows(c, dir, c.known[dir]) }

func putRows[T string | []byte](c *fileCache, dir string, now T) {
	if len(now) == 0 {
		return // as if nothing was known
	}
	c.now = binary.AppendUvarint(c.now, uint64(len(dir)))
	c.now = append(c.now, dir...)
	c.now = binary.AppendUvarint(c.now, uint64(len(now)))
	c.now = append(c.now, now...)
	c.count++
}

// save writes the cache if it changed; a failed write only costs time.
func (c *fileCache) save(store *state.Store) {
	if c.same && c.count == len(c.known) {
		return
	}
	h := xxhash.New()
	_, _ = h.WriteString(cacheHead)
	_, _ = h.Write(c.now)
	_ = store.Replace(filesCache, []byte(cacheHead), binary.LittleEndian.AppendUint64(c.now, h.Sum64()))
}
