package state

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/disk"
)

// stateLimit is the maximum size of a status or record. This program writes them, so the bound only protects against
// other content in their place.
const stateLimit = 256 << 20

// fileCollector is a visitor that collects all files.
type fileCollector struct {
	watch      *disk.Watch   // nil: no watch
	layout     *layout       // if there is a watch
	full       [][]scanEntry // full lists, which are not reallocated to grow
	files      []scanEntry
	scanErrors []scanError
}

func (g *fileCollector) file(a area, dir string, name []byte, st *disk.Stat) {
	b := make([]byte, 0, len(dir)+1+len(name))
	b = append(append(append(b, dir...), '/'), name...)
	if len(g.files) == cap(g.files) {
		g.full = append(g.full, g.files)
		g.files = make([]scanEntry, 0, 1024)
	}
	g.files = append(g.files, scanEntry{string(b), a, *st})
}

func (g *fileCollector) len() int {
	n := len(g.files)
	for _, list := range g.full {
		n += len(list)
	}
	return n
}

func (g *fileCollector) appendTo(to []scanEntry) []scanEntry {
	for _, list := range g.full {
		to = append(to, list...)
	}
	return append(to, g.files...)
}

func (g *fileCollector) folder(d *disk.Dir, dir string) { g.watch.Add(d, dir, g.layout.replaces(dir)) }

func (g *fileCollector) other(string, []byte) {}

func (g *fileCollector) scanError(t scanError) {
	g.scanErrors = append(g.scanErrors, t)
}

// chunk is how many files of one folder are read by one worker at a time.
const chunk = 128

// readFiles reads and decodes files in parallel. It leaves out files that were removed meanwhile; an unreadable file
// becomes a scanError.
func (s *Store) readFiles(ctx context.Context, root *os.Root, want []scanEntry, known map[string]*file) ([]*file, []scanError, error) {
	out := make([]*file, len(want))
	var mu sync.Mutex
	var troubles []scanError
	parts := partition(want)
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(workers(), len(parts)) {
		wg.Go(func() {
			r := reader{store: s, root: root, known: known}
			defer r.close()
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= len(parts) {
					return
				}
				p := parts[i]
				bad := r.part(want[p.from:p.to], out[p.from:p.to])
				s.Working("read files")
				mu.Lock()
				troubles = append(troubles, bad...)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	out = slices.DeleteFunc(out, func(f *file) bool { return f == nil })
	return out, troubles, ctx.Err()
}

type part struct{ from, to int }

// partition splits a list of files into parts with the same home and area.
func partition(want []scanEntry) []part {
	var parts []part
	for i := 0; i < len(want); {
		home := want[i].home()
		j := i + 1
		for j < len(want) && j-i < chunk && want[j].area == want[i].area && want[j].home() == home {
			j++
		}
		parts = append(parts, part{i, j})
		i = j
	}
	return parts
}

// home returns the folder that is opened to read a file: its own, or, for records, the folder of all records of a kind,
// since each object has few.
func (f *scanEntry) home() string {
	home := path.Dir(f.path)
	if f.area == areaRuns {
		home = path.Dir(home)
	}
	return home
}

// reader reads files sequentially.
type reader struct {
	store *Store
	root  *os.Root
	known map[string]*file

	home   string
	folder *disk.Dir // the open folder; nil before the first
	buf    []byte
}

func (r *reader) close() {
	if r.folder != nil {
		r.folder.Close()
	}
}

func (r *reader) goTo(home string) error {
	if r.folder != nil && r.home == home {
		return nil
	}
	d, err := disk.OpenDir(r.root, home)
	if err != nil {
		return err
	}
	r.close()
	if r.buf == nil {
		r.buf = make([]byte, 64<<10)
	}
	d.Use(r.buf)
	r.home, r.folder = home, d
	return nil
}

// part reads files with the same home.
func (r *reader) part(want []scanEntry, out []*file) (bad []scanError) {
	s, home := r.store, want[0].home()
	if err := r.goTo(home); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return []scanError{unreadable(home, err)}
	}
	kind := byte(blockStates)
	switch want[0].area {
	case areaSpecs:
		kind = blockSpecs
	case areaLedgers:
		kind = blockLedgers
	}
	to := s.cache.encoder(kind)
	defer func() { s.cache.write(to) }()
	for i, w := range want {
		if len(to.B) > fullBlock {
			s.cache.write(to)
			to = s.cache.encoder(kind)
		}
		f, err := r.file(w, to)
		switch {
		case err == nil:
			out[i] = f
		case !errors.Is(err, fs.ErrNotExist):
			bad = append(bad, unreadable(w.path, err))
		}
	}
	return bad
}

// file reads and decodes one file and adds it to the cache. If the content is unchanged, it reuses the decoded body.
func (r *reader) file(w scanEntry, to *encoder) (*file, error) {
	s, old := r.store, r.known[w.path]
	limit := s.limit(w.area)
	f := &file{path: w.path, area: w.area, stat: w.stat}
	if w.area == areaOther {
		return f, nil
	}
	now := s.opts.FileNow()
	data, st, err := r.folder.Read(w.path[len(r.home)+1:], limit)
	if errors.Is(err, disk.ErrNotFile) && w.area == areaSpecs {
		f.link = true
		data, st, err = s.readLink(w.path, limit)
	}
	f.stat = st
	switch {
	case errors.Is(err, disk.ErrTooLarge):
		s.tooLarge(f, limit)
		return f, nil
	case err != nil:
		return nil, err
	}
	f.racy, f.sum = f.stat.RacyAt(now, s.tick), xxhash.Sum64(data)
	if old != nil && old.sum == f.sum && old.stat.Size == f.stat.Size && old.area == f.area && old.body != nil {
		f.body, f.at = old.body, old.at
		if *f != *old {
			to.file(f, data, nil)
		}
		return f, nil
	}
	f.body = s.decode(w.area, w.path, data)
	to.file(f, data, packedOf(f.body))
	return f, nil
}

func (s *Store) limit(a area) int64 {
	if a == areaSpecs {
		return int64(s.settings.Limits.FileSize)
	}
	return stateLimit
}

// readLink reads the target of a symbolic link in specs/.
func (s *Store) readLink(p string, limit int64) ([]byte, disk.Stat, error) {
	to, err := resolveLink(s.root, p)
	if err != nil {
		return nil, disk.Stat{}, err
	}
	d, err := disk.OpenDir(s.root, path.Dir(to))
	if err != nil {
		return nil, disk.Stat{}, err
	}
	defer d.Close()
	return d.Read(path.Base(to), limit)
}

func (s *Store) tooLarge(f *file, limit int64) {
	text := fmt.Sprintf("the file has %d bytes; the limit is %d (limits.fileSize in %s)", f.stat.Size, limit,
		schemas.SettingsPath)
	if f.area != areaSpecs {
		f.body = &damage{text: text}
		return
	}
	f.body = &specBody{problems: []schemas.Problem{{
		Place: schemas.Place{Path: f.path}, Severity: schemas.Error, Code: "too-large", Message: text,
	}}}
}
