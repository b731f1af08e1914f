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
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
	"github.com/cespare/xxhash/v2"
	"reconcile.dev/reconcile/schemas/sections"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors/source"
)

// Ignored returns a function that reports the ignored names directly in a folder of the tree, "" for its root. rules is
// false if the folder has no .gitignore. It is safe for concurrent use; its result is for one goroutine.
type Ignored func(dir string, rules bool) func(name string, isDir bool) bool

// neverIndexed are folders of third-party or generated content.
var neverIndexed = []string{"testdata", "vendor", "node_modules"}

// file is a text file of the work tree.
type file struct {
	path   string
	stamp  uint64 // digest of its stat data; 0: it may be written at this moment
	digest uint64 // of its content; 0: binary
	// context is the context of a Go file; valid only with the key of its folder.
	context source.Context
	kept    bool // the digest did not change since the last scan
}

// files scans the work tree.
type files struct {
	store   *state.Store
	ignored Ignored
	exclude []string
	objects []string // folders of specs and statuses
	limit   int64
	now     int64 // nanoseconds since 1970

	cache  fileCache
	tools  string    // extra dependency of files other than Go
	looked []*looked // all folders, in breadth-first order
	left   LeftOut
	single map[string]file // files that are read individually
}

// walk scans all folders of the work tree, one depth at a time, in parallel.
func (f *files) walk(ctx context.Context) error {
	root, err := f.store.OpenFolder(".")
	if err != nil {
		return err
	}
	defer root.Close()
	for level := []*looked{{}}; len(level) > 0; {
		f.list(ctx, root, level)
		f.looked = append(f.looked, level...)
		var next []*looked
		for _, l := range level {
			next = append(next, l.below...)
			f.left.Large += l.left.Large
			f.left.Binary += l.left.Binary
			f.left.miss(l.left.Unreadable, l.left.first)
			err = errors.Join(err, l.err)
		}
		level = next
		if err = errors.Join(err, ctx.Err()); err != nil {
			return err
		}
	}
	return nil
}

// list scans folders.
func (f *files) list(ctx context.Context, root *state.Folder, level []*looked) {
	eachPart(ctx, len(level), func(i int) {
		level[i].look(f, root)
		level[i].sources(f.tools)
	})
}

// looked is the scan of a folder.
type looked struct {
	dir   string
	files []file    // sorted by name, including binary ones
	below []*looked // subfolders to scan, sorted by name
	same  bool      // all files were in the cache unchanged
	left  LeftOut
	err   error
	// inputs are the inputs from the files, in order; folder holds the Go files, or nil.
	inputs []input
	folder *goFolder
	// key is that of the Go files when their contexts were computed, 0 if these are unknown; declared is the digest of their
	// declarations then, see [source.GoFolder.Declared].
	key, declared uint64
}

// entry is an entry of a folder.
type entry struct {
	path, name string
	id         state.Identity
}

// look lists the folder and reads its files. A deleted or unreadable folder is empty.
func (l *looked) look(f *files, root *state.Folder) {
	var entries []entry
	rules := false
	err := root.ListFolder(cmp.Or(l.dir, "."), func(name []byte, id state.Identity) {
		if id.IsFile() || id.IsFolder() {
			p := path.Join(l.dir, string(name))
			entries = append(entries, entry{p, p[len(p)-len(name):], id})
		}
		rules = rules || string(name) == ".gitignore"
	})
	switch {
	case errors.Is(err, fs.ErrPermission):
		l.left.miss(1, err)
		return
	case errors.Is(err, fs.ErrNotExist):
		return
	case err != nil:
		l.err = err
		return
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.name, b.name) })
	ignored, known := f.ignored(l.dir, rules), f.cache.of(l.dir)
	about := known.find("")
	l.key, l.declared, l.same = about.stamp, about.digest, true
	for _, e := range entries {
		switch {
		case e.id.IsFolder():
			if !f.skipped(e.path, e.name) && !ignored(e.name, true) {
				l.below = append(l.below, &looked{dir: e.path})
			}
		case e.id.Size > 0 && !f.isOurs(e.path) && !f.excluded(e.path) && !ignored(e.name, false):
			l.addFile(f, e, known)
		}
	}
	l.same = l.same && !known.passed && len(known.left.B) == 0
}

// addFile adds a file whose name is not excluded.
func (l *looked) addFile(f *files, e entry, known *rows) {
	if e.id.Size > f.limit {
		l.left.Large++
		return
	}
	was := known.find(e.name)
	now, err := f.digest(e.path, e.id, f.limit, was)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			l.left.miss(1, err)
			l.same = false
		}
		return
	}
	if now.digest == 0 {
		l.left.Binary++
	}
	l.same = l.same && now.stamp == was.stamp && now.digest == was.digest
	l.files = append(l.files, now)
}

func (f *files) skipped(p, name string) bool {
	return name[0] == '.' || slices.Contains(neverIndexed, name) || f.excluded(p+"/")
}

// isOurs reports whether a file is the index itself, or a spec, status or record, which are indexed as objects. Other files
// in these folders are ordinary files.
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

// digest returns the digest and cached data of a file; an unchanged file is not read. The digest is 0 for a binary file;
// the error is that of reading.
func (f *files) digest(p string, id state.Identity, limit int64, was file) (now file, err error) {
	now = file{path: p, stamp: stampAt(f.now, id)}
	now.context, now.kept = was.context, true
	if now.stamp != 0 && now.stamp == was.stamp {
		now.digest = was.digest
		return now, nil
	}
	text, _, err := f.store.ReadFile(p, limit)
	if err != nil {
		return file{}, err
	}
	now.digest = digestText(text)
	now.kept = now.digest == was.digest
	return now, nil
}

// digestText returns the digest of a file's content; 0 for binary content.
func digestText(text []byte) uint64 {
	if !isText(text) {
		return 0
	}
	return max(xxhash.Sum64(text), 1)
}

// holds reports whether the file's content is unchanged since it was found.
func (f *file) holds(text []byte) bool { return digestText(text) == f.digest }

// one is digest for a file that is not part of a folder's scan.
func (f *files) one(p string, id state.Identity, limit int64) (now file, ok bool) {
	was := f.cache.of(singles).find(p)
	now, err := f.digest(p, id, limit, was)
	switch {
	case err == nil:
		f.single[p] = now
	case !errors.Is(err, fs.ErrNotExist):
		f.left.miss(1, err)
	}
	return now, err == nil
}

// save writes the cache of all files.
func (f *files) save() {
	f.cache.begin()
	var all sections.Encoder
	for _, l := range f.looked {
		if l.same {
			f.cache.keep(l.dir)
			continue
		}
		all.B = all.B[:0]
		if l.key != 0 {
			appendRow(&all, "", &file{stamp: l.key, digest: l.declared})
		}
		for j := range l.files {
			appendRow(&all, path.Base(l.files[j].path), &l.files[j])
		}
		f.cache.put(l.dir, all.B)
	}
	all.B = all.B[:0]
	for _, p := range slices.Sorted(maps.Keys(f.single)) {
		one := f.single[p]
		appendRow(&all, p, &one)
	}
	f.cache.put(singles, all.B)
	f.cache.save(f.store)
}

// tick is the time in nanoseconds within which a second write of a file may not change its times.
const tick = 2e9

// stampAt returns a digest of the stat data, at a time in nanoseconds since 1970; 0 for a file that was just written and
// may be written again within the same tick of the clock.
func stampAt(now int64, id state.Identity) uint64 {
	if now-max(id.Mtime, id.Ctime) < tick {
		return 0
	}
	return stampOf(id)
}

// isText applies git's test for text: no NUL near the start.
func isText(b []byte) bool { return bytes.IndexByte(b[:min(len(b), 8000)], 0) < 0 }

// text reads a file that was found.
func (f *files) text(p string) (source.File, error) {
	b, _, err := f.store.ReadFile(p, f.limit)
	return source.File{Path: p, Text: b}, err
}

// stampOf returns a digest of a file's stat data.
func stampOf(id state.Identity) uint64 {
	var b [32]byte
	for i, n := range []uint64{uint64(id.Size), uint64(id.Mtime), uint64(id.Ctime), id.Ino} {
		binary.LittleEndian.PutUint64(b[8*i:], n)
	}
	return max(xxhash.Sum64(b[:]), 1)
}

// gather appends the inputs of a folder and its subfolders to files, or to goes for Go.
func (l *looked) gather(files, goes *[]input) {
	below := l.below
	for i := range l.inputs {
		in := &l.inputs[i]
		for in.at != wholePackage && len(below) > 0 && below[0].before(in.files[0].path) {
			below[0].gather(files, goes)
			below = below[1:]
		}
		if in.folder != nil {
			*goes = append(*goes, *in)
		} else {
			*files = append(*files, *in)
		}
	}
	for _, b := range below {
		b.gather(files, goes)
	}
}

// before reports whether files in the folder sort before the sibling file p.
func (l *looked) before(p string) bool {
	n := min(len(l.dir), len(p))
	order := strings.Compare(l.dir[:n], p[:n])
	return order < 0 || order == 0 && n < len(p) && p[n] > '/'
}

// sources creates inputs of the texts of a folder.
func (l *looked) sources(tools string) {
	l.inputs = make([]input, 0, len(l.files)+1)
	var goes []*file
	for i := range l.files {
		if f := &l.files[i]; f.digest != 0 && isGo(f.path) {
			goes = append(goes, f)
		}
	}
	l.addGo(goes)
	n := 0
	for i := range l.files {
		f := &l.files[i]
		one := l.files[i : i+1 : i+1]
		switch {
		case f.digest == 0:
		case isGo(f.path):
			l.inputs = append(l.inputs, input{name: "go:" + f.path, files: one, folder: l.folder, at: n})
			n++
		default:
			l.inputs = append(l.inputs, input{name: "file:" + f.path, files: one, digest: digestOf(tools, one...)})
		}
	}
}

func inUnit(x float64) bool { return x >= 0 && x <= 1 }
