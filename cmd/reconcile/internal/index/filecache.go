package index

import (
	"encoding/binary"
	"strings"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors/source"
)

const filesCache = ".reconcile/cache/index-files"

// fileCache keeps what is known of files by what the file system says of them, by folder: so it is compared with a folder
// that was listed without a table of all files. It is cacheHead; a folder after the other, each its name, the number of
// bytes of its rows, and these, see appendRow; and in the end the xxhash64 of all of it. Numbers are uvarints or, if they
// are digests, 8 bytes, little-endian.
type fileCache struct {
	known map[string]string // rows as they were last time
	size  int               // of all of that
	now   []byte            // as they are
	count int               // of folders in now
	same  bool              // what is in now was known
}

// cacheHead tells how the rest is written.
const cacheHead = "files 2\n"

// singles is the name under which files are known that are not taken by folder; no folder has it.
const singles = "\x00"

// rows are the files of a folder, sorted by name, that were not looked for yet.
type rows struct {
	left   string
	passed bool // a row was passed over: the file is no longer there
}

// appendRow adds a file: its name and how long that is, its stamp and its digest; and its context, if it is of Go. That of
// a folder in which all contexts are known has no name, and the folder's key and what it declares: it comes first.
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

func isGo(name string) bool { return strings.HasSuffix(name, ".go") }

// find looks for a file from where the one before was found: it must be asked for names in their order.
func (r *rows) find(name string) (f file, ok bool) {
	for len(r.left) > 0 {
		n, rest, ok := cutNumber(r.left)
		size := 16
		if ok && n <= len(rest) && isGo(rest[:n]) {
			size = 32
		}
		if !ok || n+size > len(rest) {
			r.left, r.passed = "", true // it was not written so
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

// load reads the cache. One that is damaged is as none.
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
			return // it was not written so
		}
		size, more, ok := cutNumber(rest[n:])
		if !ok || size > len(more) {
			return
		}
		c.known[rest[:n]] = more[:size]
		s = more[size:]
	}
}

// of is what is known of the files of a folder.
func (c *fileCache) of(dir string) *rows { return &rows{left: c.known[dir]} }

// begin forgets what was noted.
func (c *fileCache) begin() { c.now, c.count, c.same = make([]byte, 0, c.size+c.size/16), 0, true }

// put notes what is known of a folder now.
func (c *fileCache) put(dir string, now []byte) {
	if string(now) != c.known[dir] {
		c.same = false
	}
	putRows(c, dir, now)
}

// keep notes that of a folder the same is known as before.
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

// save keeps what is known, if that changed; that it cannot be kept costs time only.
func (c *fileCache) save(store *state.Store) {
	if c.same && c.count == len(c.known) {
		return
	}
	h := xxhash.New()
	_, _ = h.WriteString(cacheHead)
	_, _ = h.Write(c.now)
	_ = store.Replace(filesCache, []byte(cacheHead), binary.LittleEndian.AppendUint64(c.now, h.Sum64()))
}

// stampOf is a digest of what the file system says of a file.
func stampOf(id state.Identity) uint64 {
	var b [32]byte
	for i, n := range []uint64{uint64(id.Size), uint64(id.Mtime), uint64(id.Ctime), id.Ino} {
		binary.LittleEndian.PutUint64(b[8*i:], n)
	}
	return max(xxhash.Sum64(b[:]), 1)
}
