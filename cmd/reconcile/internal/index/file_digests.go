package index

import (
	"bytes"
	"strings"

	"reconcile.dev/reconcile/schemas/sections"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors/source"
)

const filesCache = ".reconcile/cache/index-files"

// fileCache caches the digests of files under their stat data, by folder, so that it can be compared with a listed folder
// without a table of all files. It is a file of package sections with one section: one folder after the other, each as its
// name and its rows, see appendRow.
type fileCache struct {
	known map[string][]byte // rows of the last scan
	size  int               // total size of known
	now   sections.Encoder  // rows of this scan
	count int               // number of folders in now
	same  bool              // now equals the known rows
}

var cacheFormat = sections.Format{Magic: "rcnfiles", Version: 3}

// singles is the key of files that are not part of a folder's scan; no folder has this name.
const singles = "\x00"

// rows are the remaining rows of a folder, sorted by name.
type rows struct {
	left   sections.Decoder
	passed bool // a row was skipped: its file is gone
}

// appendRow appends a file: its name with its length, its stamp and its digest; and, for a Go file, its context. The first
// row of a folder whose contexts are all known has no name, and holds the folder's key and declarations.
func appendRow(to *sections.Encoder, name string, f *file) {
	to.String(name)
	to.Fixed(f.stamp)
	to.Fixed(f.digest)
	if isGo(name) {
		to.Fixed(f.context.Declared)
		to.Fixed(f.context.Head)
	}
}

// find returns the row of a file, which is zero without one. It continues from the last result: names must be requested in
// order.
func (r *rows) find(name string) (f file) {
	for len(r.left.B) > 0 {
		next := r.left
		is := next.Shared()
		f.stamp, f.digest = next.Fixed(), next.Fixed()
		if isGo(is) {
			f.context = source.Context{Declared: next.Fixed(), Head: next.Fixed()}
		}
		order := strings.Compare(is, name)
		if !next.Bad && order > 0 {
			break
		}
		if r.left = next; !next.Bad && order == 0 {
			return f
		}
		f, r.passed = file{}, true // corrupt, or a file that is gone
	}
	return file{}
}

// load reads the cache. A damaged cache is empty.
func (c *fileCache) load(store *state.Store) {
	c.known = map[string][]byte{}
	b, _, err := store.ReadFile(filesCache, 1<<30)
	if err != nil {
		return
	}
	f, err := cacheFormat.Open(b)
	if err != nil || f.Verify() != nil {
		return
	}
	c.size = len(b)
	for d := (sections.Decoder{B: f.Get(0)}); len(d.B) > 0; {
		if dir, rows := d.Shared(), d.Bytes(); !d.Bad {
			c.known[dir] = rows
		}
	}
}

// of returns the cached rows of a folder.
func (c *fileCache) of(dir string) *rows { return &rows{left: sections.Decoder{B: c.known[dir]}} }

// begin clears the rows of this scan.
func (c *fileCache) begin() {
	c.now.B, c.count, c.same = make([]byte, 0, c.size+c.size/16), 0, true
}

// put records the rows of a folder.
func (c *fileCache) put(dir string, now []byte) {
	c.same = c.same && bytes.Equal(now, c.known[dir])
	if len(now) == 0 {
		return // as if nothing was known
	}
	c.now.String(dir)
	c.now.Bytes(now)
	c.count++
}

// keep records that a folder's rows did not change.
func (c *fileCache) keep(dir string) { c.put(dir, c.known[dir]) }

// save writes the cache if it changed; a failed write only costs time.
func (c *fileCache) save(store *state.Store) {
	if c.same && c.count == len(c.known) {
		return
	}
	var parts [][]byte
	_ = cacheFormat.Content(sections.Of(c.now.B)).Write(func(b []byte) error {
		parts = append(parts, b)
		return nil
	}) // all of it is in memory
	_ = store.Replace(filesCache, parts...)
}
