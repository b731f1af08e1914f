package index

import (
	"encoding/binary"
	"path"
	"strings"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/state"
)

const filesCache = ".reconcile/cache/index-files"

// fileCache keeps what is known of files by what the file system says of them, by folder: so it is compared with a folder
// that was listed without a table of all files. It is cacheHead; a folder after the other, each its name, the number of
// bytes of its rows, and these, see appendRow; and in the end the xxhash64 of all of it. Numbers are uvarints or, if they
// are digests, 8 bytes, little-endian.
type fileCache struct {
	known map[string]rows // as they were last time
	now   []byte          // as they are
	count int             // of folders in now
	same  bool            // what is in now was known
}

// cacheHead tells how the rest is written.
const cacheHead = "files 2\n"

// singles is the name under which files are known that are not taken by folder; no folder has it.
const singles = "\x00"

// rows are the files of a folder, sorted by name.
type rows string

// appendRow adds a file: its name and how long that is, its stamp and its digest; and its context, if it is of Go. That of
// a folder in which all contexts are known has no name, and the folder's key and what it declares: it comes first.
func appendRow(to []byte, name string, f *file) []byte {
	to = binary.AppendUvarint(to, uint64(len(name)))
	to = append(to, name...)
	for _, n := range f.numbers(name) {
		to = binary.LittleEndian.AppendUint64(to, *n)
	}
	return to
}

// numbers are those that a row has behind the name.
func (f *file) numbers(name string) []*uint64 {
	if path.Ext(name) == ".go" {
		return []*uint64{&f.stamp, &f.digest, &f.context.Declared, &f.context.Head}
	}
	return []*uint64{&f.stamp, &f.digest}
}

// find looks for a file from where the one before was found: it must be asked for names in their order.
func (r *rows) find(name string) (f file, ok bool) {
	for len(*r) > 0 {
		n, rest, ok := cutNumber(string(*r))
		if !ok || n > len(rest) {
			break // it was not written so
		}
		found, rest := rest[:n], rest[n:]
		numbers := f.numbers(found)
		if 8*len(numbers) > len(rest) {
			break
		}
		order := strings.Compare(found, name)
		if order > 0 {
			return file{}, false
		}
		*r = rows(rest[8*len(numbers):])
		if order == 0 {
			for i, n := range numbers {
				*n = binary.LittleEndian.Uint64([]byte(rest[8*i : 8*i+8]))
			}
			return f, true
		}
	}
	*r = ""
	return file{}, false
}

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
	c.known, c.same = map[string]rows{}, true
	b, _, err := store.ReadFile(filesCache, 1<<30)
	if err != nil || len(b) < 8 || xxhash.Sum64(b[:len(b)-8]) != binary.LittleEndian.Uint64(b[len(b)-8:]) {
		return
	}
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
		c.known[rest[:n]] = rows(more[:size])
		s = more[size:]
	}
}

// of is what is known of the files of a folder.
func (c *fileCache) of(dir string) *rows {
	r := c.known[dir]
	return &r
}

// put notes what is known of a folder now.
func (c *fileCache) put(dir string, now []byte) {
	c.same = c.same && c.known[dir] == rows(now)
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
	now := append([]byte(cacheHead), c.now...)
	_ = store.Replace(filesCache, binary.LittleEndian.AppendUint64(now, xxhash.Sum64(now)))
}

// stampOf is a digest of what the file system says of a file.
func stampOf(id state.Identity) uint64 {
	var b [32]byte
	for i, n := range []uint64{uint64(id.Size), uint64(id.Mtime), uint64(id.Ctime), id.Ino} {
		binary.LittleEndian.PutUint64(b[8*i:], n)
	}
	return max(xxhash.Sum64(b[:]), 1)
}
