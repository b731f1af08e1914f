package index

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"io/fs"
	"maps"
	"path"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors/source"
)

// Ignored says what is left out directly in a folder of the tree, "" for its root.
type Ignored func(dir string) func(name string, isDir bool) bool

// neverIndexed are folders of what others wrote, or of what is no source.
var neverIndexed = []string{"testdata", "vendor", "node_modules"}

// file is a text of the work tree.
type file struct {
	path   string
	stamp  uint64 // of what the file system says of it; 0: it may be written this very moment
	digest uint64 // of its content; 0: it is no text
}

// files looks at the work tree.
type files struct {
	store   *state.Store
	ignored Ignored
	exclude []string
	objects []string // folders of specs and statuses
	limit   int64
	now     time.Time
	known   map[string]file // as they were last time

	seen  map[string]file // as they are, also what is no text
	found []file
}

// walk lists the texts of the work tree, sorted by path. The folders of one depth are listed on all processors.
func (f *files) walk(ctx context.Context) error {
	f.seen = map[string]file{}
	for level := []string{""}; len(level) > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		listed, err := f.list(level)
		if err != nil {
			return err
		}
		var below []string
		for i, dir := range level {
			below = append(below, f.folder(dir, listed[i])...)
		}
		level = below
	}
	slices.SortFunc(f.found, func(a, b file) int { return strings.Compare(a.path, b.path) })
	return nil
}

// entry is something in a folder.
type entry struct {
	name string
	id   state.Identity
}

// list looks into folders. One that went, or that may not be looked into, is empty.
func (f *files) list(dirs []string) ([][]entry, error) {
	out, wrong := make([][]entry, len(dirs)), make([]error, len(dirs))
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(dirs)) {
		workers.Go(func() {
			for i := next.Add(1) - 1; int(i) < len(dirs); i = next.Add(1) - 1 {
				err := f.store.LookInto(cmp.Or(dirs[i], "."), func(name []byte, id state.Identity) {
					out[i] = append(out[i], entry{string(name), id})
				})
				if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrPermission) {
					wrong[i] = err
				}
			}
		})
	}
	workers.Wait()
	return out, errors.Join(wrong...)
}

// folder takes the files of a folder, and returns the folders below it that are to be looked into.
func (f *files) folder(dir string, entries []entry) (below []string) {
	ignored := f.ignored(dir)
	for _, e := range entries {
		p := path.Join(dir, e.name)
		switch id := e.id; {
		case id.IsFolder() && !f.skipped(p, e.name) && !ignored(e.name, true):
			below = append(below, p)
		case id.IsFile() && id.Size <= f.limit && id.Size > 0 && !f.isOurs(p) && !f.excluded(p) && !ignored(e.name, false):
			f.take(p, id)
		}
	}
	return below
}

func (f *files) skipped(p, name string) bool {
	return name[0] == '.' || slices.Contains(neverIndexed, name) || f.excluded(p+"/")
}

// isOurs reports whether a file is the index itself, or a spec, a status, or a record: these are indexed as what they tell
// of. Other files beside them are files like any other.
func (f *files) isOurs(p string) bool {
	if p == SnapshotPath || p == DeltaPath {
		return true
	}
	switch path.Ext(p) {
	case ".json", ".yaml", ".yml", ".toml":
		return slices.ContainsFunc(f.objects, func(dir string) bool { return strings.HasPrefix(p, dir+"/") })
	}
	return false
}

func (f *files) excluded(p string) bool {
	for _, glob := range f.exclude {
		if ok, err := doublestar.Match(glob, p); ok && err == nil {
			return true
		}
	}
	return false
}

// take lists a file, if it is a text.
func (f *files) take(p string, id state.Identity) {
	if now, ok := f.digest(p, id, f.limit); ok && now.digest != 0 {
		f.found = append(f.found, now)
	}
}

// digest is what is known of a file; one that is as it was is not read. The digest is 0 if it is no text; ok is false if
// it cannot be read, because it went or may not be.
func (f *files) digest(p string, id state.Identity, limit int64) (now file, ok bool) {
	stamp := f.stamp(id)
	if was, ok := f.known[p]; ok && stamp != 0 && was.stamp == stamp {
		f.seen[p] = was
		return was, true
	}
	text, _, err := f.store.ReadFile(p, limit)
	if err != nil {
		return file{}, false
	}
	now = file{path: p, stamp: stamp}
	if isText(text) {
		now.digest = max(xxhash.Sum64(text), 1)
	}
	f.seen[p] = now
	return now, true
}

// stamp is a digest of what the file system says. A file that was written within the last two seconds may be written
// again within the same tick of the clock: it has none.
func (f *files) stamp(id state.Identity) uint64 {
	if f.now.UnixNano()-max(id.Mtime, id.Ctime) < int64(2*time.Second) {
		return 0
	}
	var b []byte
	for _, n := range []uint64{uint64(id.Size), uint64(id.Mtime), uint64(id.Ctime), id.Ino} {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return max(xxhash.Sum64(b), 1)
}

// isText is what git takes for text: no NUL near the begin.
func isText(b []byte) bool { return bytes.IndexByte(b[:min(len(b), 8000)], 0) < 0 }

// text reads a file that was found.
func (f *files) text(p string) (source.File, error) {
	b, _, err := f.store.ReadFile(p, f.limit)
	return source.File{Path: p, Text: b}, err
}

const filesCache = ".reconcile/cache/index-files"

// The cache has for each file: length of the path, path, stamp, digest; all little-endian; and in the end the xxhash64
// of all of it.
func (f *files) load() {
	f.known = map[string]file{}
	b, _, err := f.store.ReadFile(filesCache, 1<<30)
	if err != nil || len(b) < 8 || xxhash.Sum64(b[:len(b)-8]) != binary.LittleEndian.Uint64(b[len(b)-8:]) {
		return
	}
	for b = b[:len(b)-8]; len(b) >= 4; {
		n := int(binary.LittleEndian.Uint32(b))
		if n > len(b)-20 {
			return // it was not written so
		}
		p := string(b[4 : 4+n])
		f.known[p] = file{p, binary.LittleEndian.Uint64(b[4+n:]), binary.LittleEndian.Uint64(b[12+n:])}
		b = b[20+n:]
	}
}

// save keeps what is known; that it cannot be kept costs time only.
func (f *files) save() {
	var b []byte
	for _, p := range slices.Sorted(maps.Keys(f.seen)) {
		k := f.seen[p]
		b = binary.LittleEndian.AppendUint32(b, uint32(len(p)))
		b = append(b, p...)
		b = binary.LittleEndian.AppendUint64(b, k.stamp)
		b = binary.LittleEndian.AppendUint64(b, k.digest)
	}
	b = binary.LittleEndian.AppendUint64(b, xxhash.Sum64(b))
	_ = f.store.Replace(filesCache, b)
}
