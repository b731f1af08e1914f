package state

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/schemas"
)

// file is what is known of one file of the tree: what the system says of it and what it holds. A file is immutable
// once others can see it, but for racy, which Settle takes away, and specBody.cross.
type file struct {
	path string
	area area
	// racy says that the file was changed so shortly before it was read that a further change may look the same to
	// the file system. Its content is compared again at the next look (git's care for racy timestamps).
	racy bool
	link bool // path is a symbolic link to the file
	stat stat
	sum  uint64 // of the content
	at   int64  // of the cache's record of it; 0: not known
	body any    // *specBody, schemas.Status, *schemas.Run, *Ledger, *damage, or nil for what is not decoded
}

// specBody is what a spec file holds.
type specBody struct {
	ref      schemas.Ref // zero when the object cannot be named
	at       schemas.Place
	object   *schemas.Object   // nil while problems holds an error
	problems []schemas.Problem // of the file by itself
	// refs are the references of what is sound in a broken object; object has its own.
	refs []schemas.Reference

	// cross are the problems that show only when the whole tree is known.
	cross []schemas.Problem
}

// references are what the object, or what is sound of a broken one, refers to.
func (b *specBody) references() []schemas.Reference {
	if b.object != nil {
		return b.object.Refs
	}
	return b.refs
}

// damage is why a file under state/ cannot be used.
type damage struct {
	text         string
	line, column int // where; 0 when it is about the whole file
}

func damageOf(err error) *damage {
	d := &damage{text: err.Error()}
	if at := (*placedError)(nil); errors.As(err, &at) {
		d.line, d.column = at.line, at.column
	}
	return d
}

// tick is how long the clock of a file system may stand still, at most: a file that was changed less than a tick
// before it was looked at may be changed again without a sign. Linux ticks every 1 to 10 ms.
const tick = 20 * time.Millisecond

// racyAt reports whether a look at now may miss a later change.
func (s *stat) racyAt(now time.Time) bool { return s.changed() >= now.Add(-tick).UnixNano() }

// stateLimit is the largest status or record that is read. They are written by this program, so the bound is only
// there to survive what else may be found in their place.
const stateLimit = 256 << 20

// seen is a file that a scan found.
type seen struct {
	path string
	area area
	stat stat
}

// gather is the visitor that keeps everything.
type gather struct {
	watch    *watch   // nil: none
	full     [][]seen // lists that have no more room: one that grows would be copied again and again
	files    []seen
	troubles []trouble
}

func (g *gather) file(a area, dir string, name []byte, st *stat) {
	b := make([]byte, 0, len(dir)+1+len(name))
	b = append(append(append(b, dir...), '/'), name...)
	if len(g.files) == cap(g.files) {
		g.full = append(g.full, g.files)
		g.files = make([]seen, 0, 1024)
	}
	g.files = append(g.files, seen{string(b), a, *st})
}

func (g *gather) len() int {
	n := len(g.files)
	for _, list := range g.full {
		n += len(list)
	}
	return n
}

func (g *gather) appendTo(to []seen) []seen {
	for _, list := range g.full {
		to = append(to, list...)
	}
	return append(to, g.files...)
}

func (g *gather) folder(d *folder, dir string) { g.watch.add(d, dir) }

func (g *gather) trouble(t trouble) {
	g.troubles = append(g.troubles, t)
}

// chunk is how many files of one folder are read by one worker at a time.
const chunk = 128

// readFiles reads and decodes files, in parallel. Files that vanished meanwhile are left out; what cannot be read
// becomes a trouble.
func (s *Store) readFiles(ctx context.Context, root *os.Root, want []seen, known map[string]*file) ([]*file, []trouble, error) {
	out := make([]*file, len(want))
	var mu sync.Mutex
	var troubles []trouble
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
				s.Working()
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

// partition cuts a list of files into parts of one home and area each.
func partition(want []seen) []part {
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

// home is the folder that is opened to read a file: its own, or, as there are few records in a folder each, the one of
// the records of all objects of a kind.
func (f *seen) home() string {
	home := path.Dir(f.path)
	if f.area == areaRuns {
		home = path.Dir(home)
	}
	return home
}

// reader reads files, one after another.
type reader struct {
	store *Store
	root  *os.Root
	known map[string]*file

	home   string
	folder *folder // the open one; nil before the first
	buf    []byte
}

func (r *reader) close() {
	if r.folder != nil {
		r.folder.close()
	}
}

func (r *reader) goTo(home string) error {
	if r.folder != nil && r.home == home {
		return nil
	}
	d, err := openFolder(r.root, home)
	if err != nil {
		return err
	}
	r.close()
	if r.buf == nil {
		r.buf = make([]byte, 64<<10)
	}
	d.use(r.buf)
	r.home, r.folder = home, d
	return nil
}

// part reads files of one home.
func (r *reader) part(want []seen, out []*file) (bad []trouble) {
	s, home := r.store, want[0].home()
	if err := r.goTo(home); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return []trouble{unreadable(home, err)}
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
		if len(to.b) > fullBlock {
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

// file reads and decodes one file and notes for the cache what it found. When the content is the one that is known, so is
// what it holds.
func (r *reader) file(w seen, to *encoder) (*file, error) {
	s, old := r.store, r.known[w.path]
	limit := s.limit(w.area)
	f := &file{path: w.path, area: w.area, stat: w.stat}
	if w.area == areaOther {
		return f, nil
	}
	now := s.opts.FileNow()
	data, st, err := r.folder.read(w.path[len(r.home)+1:], limit)
	if errors.Is(err, errNotFile) && w.area == areaSpecs {
		f.link = true
		data, st, err = s.readLink(w.path, limit)
	}
	f.stat = st
	switch {
	case errors.Is(err, errTooLarge):
		s.tooLarge(f, limit)
		return f, nil
	case err != nil:
		return nil, err
	}
	f.racy, f.sum = f.stat.racyAt(now), xxhash.Sum64(data)
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

// readLink reads the file that a symbolic link in specs/ leads to.
func (s *Store) readLink(p string, limit int64) ([]byte, stat, error) {
	to, err := resolve(s.root, p)
	if err != nil {
		return nil, stat{}, err
	}
	d, err := openFolder(s.root, path.Dir(to))
	if err != nil {
		return nil, stat{}, err
	}
	defer d.close()
	return d.read(path.Base(to), limit)
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

// decode makes the body of a file from its content.
func (s *Store) decode(a area, p string, data []byte) any {
	s.decoded.Add(1)
	if a == areaSpecs {
		return s.decodeSpec(p, data)
	}
	return s.decodeState(a, p, data)
}

// decodeState makes the body of a status or run.
func (s *Store) decodeState(a area, p string, data []byte) any {
	switch a {
	case areaStatus:
		if h := s.shapedStatus(p, data); h != nil {
			return h
		}
		return s.decodeStatusFile(p, data)
	case areaRuns:
		key := s.layout().runKey(p)
		if h := s.shapedRun(key, data); h != nil {
			return h
		}
		r, err := decodeRun(key, data, bytes.Clone(data))
		if err != nil {
			return damageOf(err)
		}
		return holdRun(key, r)
	case areaLedgers:
		return decodeLedgerFile(p, data)
	}
	return nil
}

func (s *Store) shapedRun(key string, data []byte) *heldRun {
	r := s.room()
	defer s.rooms.Put(r)
	return r.shapedRun(s.shapes().run, key, data)
}

func (s *Store) shapedStatus(p string, data []byte) *heldStatus {
	_, ref := s.layout().classify(p)
	of := s.shapes().statuses[ref.Kind]
	if of == nil || schemas.CheckName(ref.Name) != nil {
		return nil
	}
	r := s.room()
	defer s.rooms.Put(r)
	h := r.shapedStatus(of, ref, data)
	if h != nil {
		h.store, h.path = s, p
	}
	return h
}

func (s *Store) room() *room {
	if r, ok := s.rooms.Get().(*room); ok {
		return r
	}
	return new(room)
}

func (s *Store) decodeStatusFile(p string, data []byte) any {
	_, ref := s.layout().classify(p)
	k, _ := s.opts.Kinds.Find(ref.Kind)
	if k.NewStatus == nil {
		return &damage{text: "nothing of that kind has a status"}
	}
	if err := schemas.CheckName(ref.Name); err != nil {
		return &damage{text: "it is not named like an object: " + err.Error()}
	}
	r := s.room()
	defer s.rooms.Put(r)
	st, err := r.decodeStatus(k, ref.Name, data)
	if err != nil {
		return damageOf(err)
	}
	return holdStatus(st)
}

func (s *Store) decodeSpec(p string, data []byte) any {
	d := s.decoder.Decode(p, data)
	b := &specBody{ref: d.Ref, at: d.At, object: d.Object, problems: d.Problems}
	if d.Ref != (schemas.Ref{}) {
		b.refs = d.Refs // what has no name is not judged again when what it refers to appears
	}
	if b.at.Path == "" {
		b.at.Path = p
	}
	k, ok := s.opts.Kinds.Find(d.Ref.Kind)
	if !ok || k.NewStatus == nil {
		b.ref, b.object, b.refs = schemas.Ref{}, nil, nil // Settings in a wrong place, which the decoder has refused
	}
	if b.object != nil && k.CheckObject != nil {
		checkObject(k, b, p, data)
	}
	return b
}

// checkObject runs Kind.CheckObject.
func checkObject(k schemas.Kind, b *specBody, p string, data []byte) {
	var r schemas.Report
	k.CheckObject(b.object, &r)
	b.problems = append(b.problems, located(&r, b.ref, p, data)...)
	if slices.ContainsFunc(b.problems, func(p schemas.Problem) bool { return p.Severity == schemas.Error }) {
		b.object, b.refs = nil, b.object.Refs
	}
}

// located makes problems of what was found wrong with an object; data is the text of its file at p.
func located(r *schemas.Report, ref schemas.Ref, p string, data []byte) []schemas.Problem {
	var out []schemas.Problem
	for _, f := range r.Findings() {
		field := append([]any{"spec"}, f.Field...)
		at, source := schemas.Locate(p, data, field...)
		at.Path = p
		out = append(out, schemas.Problem{Place: at, Severity: f.Severity, Code: f.Code, Ref: ref,
			Field: fieldPath(field), Message: f.Message, Suggestion: f.Suggestion, Source: source})
	}
	schemas.Discreet(out, string(data))
	return out
}

// fieldPath writes a field as "spec.nodes[2].needs[0]".
func fieldPath(field []any) string {
	var b []byte
	for _, f := range field {
		switch f := f.(type) {
		case int:
			b = fmt.Appendf(b, "[%d]", f)
		case string:
			if len(b) > 0 {
				b = append(b, '.')
			}
			b = append(b, f...)
		}
	}
	return string(b)
}
