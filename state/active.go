package state

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"time"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/regular"
)

// A run in a tree of which most is dormant loads only the rest: what is active, and what differs from the tree that was
// settled last. Where it comes upon something that bears on dormant objects, it loads everything.

// manyDormant is how many files of dormant objects make it worth while to leave them.
const manyDormant = 1000

// activeLoad is a load of what is active.
type activeLoad struct {
	*Store
	first   *glance
	base    *base
	model   *model
	found   []found          // the files that are not left
	woken   map[uint64]bool  // owners of which a file differs
	known   map[string]*file // what differs, as it was when the tree was settled
	records *cacheReader
	files   []*file // as the cache has them
	want    []seen  // to be read
}

// loadActive is LoadChanged without the dormant objects. Without ok nothing was done, and everything is to be loaded.
func (s *Store) loadActive(ctx context.Context) (t *Tree, changed []schemas.Ref, ok bool, err error) {
	if s.model != nil || s.opts.NoCache || s.first == nil {
		return nil, nil, false, nil
	}
	settings := s.readSettings()
	s.useSettings(settings.spec)
	if s.checkFolders(s.layout()) != nil {
		return nil, nil, false, nil
	}
	m := newModel(s.layout())
	m.settings = settings
	s.readJournals(m)
	if m.journaled() {
		return nil, nil, false, nil
	}
	gen := s.generation()
	was, ok := s.readSettled()
	if !ok || !s.seenFirst(gen) || s.first.troubled() {
		return nil, nil, false, nil
	}
	l := &activeLoad{Store: s, first: s.first, model: m, woken: map[uint64]bool{}, known: map[string]*file{}}
	if l.base = s.readBase(was, m); l.base == nil || !s.worthLeaving(l.base) || !l.openCache(was) {
		return nil, nil, false, nil
	}
	defer l.records.Close()
	if changed, ok, err = l.load(ctx, was); !ok || err != nil {
		return nil, nil, false, err
	}
	s.first, s.model, s.seenGen, s.folded = nil, m, gen, nil
	s.cache.finish(m)
	return m.tree(), changed, true, nil
}

// journaled reports whether some journal says anything.
func (m *model) journaled() bool {
	for _, v := range m.journals {
		if len(v.owners) > 0 || len(v.problems) > 0 {
			return true
		}
	}
	return false
}

// seenFirst reports whether what Fresh saw still counts.
func (s *Store) seenFirst(gen int64) bool {
	l := s.layout()
	return s.first != nil && (s.watch.stands() || s.opts.FileNow().Sub(s.first.at) <= time.Second) &&
		s.first.gen == gen && s.first.layout.specs == l.specs && s.first.layout.state == l.state
}

// worthLeaving reports whether dormant objects are left: they are many, and the cache need not be cleaned up.
func (s *Store) worthLeaving(b *base) bool {
	n := 0
	for i := range b.files {
		if b.files[i].owner > 0 {
			n++
		}
	}
	return n >= s.opts.DormantFrom && b.records <= 2*uint64(len(b.files))+1000
}

// load makes the model. What it comes upon before it knows that it can do that changes nothing but the cache.
func (l *activeLoad) load(ctx context.Context, was settled) (changed []schemas.Ref, ok bool, err error) {
	if !l.compare() {
		return nil, false, nil
	}
	m := l.model
	m.dormant = newDormants(l.base)
	for owner := range l.woken {
		m.dormant.awake[l.base.dormant[owner-1].Ref] = true
	}
	l.collect()
	read, troubles, err := l.readFiles(ctx, l.root, l.want, l.known)
	if err != nil || len(troubles) > 0 {
		return nil, false, err
	}
	for _, f := range append(l.files, read...) {
		m.put(f)
	}
	l.judgeAll(m)
	m.inputs = l.newInputs(m)
	if _, err := l.readInputs(ctx, m, nil); err != nil {
		return nil, false, fmt.Errorf("load the tree %s: %w", l.dir, err)
	}
	m.declared = l.newDeclared(m)
	m.declared.look(m.declared.paths())
	s := l.since(m, was, l.base, l.known)
	if changed, ok = s.refs(); !ok {
		return nil, false, nil
	}
	for ref := range s.touched {
		ok = ok && !m.dormant.has(ref)
	}
	for _, f := range read {
		was := l.base.file(f.path)
		ok = ok && (was != nil && was.content == f.content() || !m.dormant.bearsOn(f))
	}
	for p, f := range l.known {
		if now := m.files[p]; now == nil || now.content() != f.content() {
			ok = ok && !m.dormant.bearsOn(f)
		}
	}
	m.dormant.full = &fullTree{load: l.loadAll}
	return changed, ok, nil
}

// compare finds out what differs from the base, and reports whether what it was is known.
func (l *activeLoad) compare() bool {
	there, others := make([]bool, len(l.base.files)), map[int]bool{}
	for f := range l.first.each() {
		i := l.base.findLook(f.look)
		switch {
		case i >= 0:
			there[i] = true
		case f.area == areaOther:
			others[l.base.find(hashOf(f.dir+"/"+string(f.name)))] = true // what they held is not known
		}
		if i < 0 || l.base.files[i].owner == 0 {
			l.found = append(l.found, found{f, i})
		}
	}
	for i := range l.base.files {
		if !there[i] && !l.differs(&l.base.files[i]) && !others[i] {
			return false
		}
	}
	if len(l.woken) == 0 {
		return true
	}
	for f := range l.first.each() {
		if i := l.base.findLook(f.look); i >= 0 && l.woken[l.base.files[i].owner] {
			l.found = append(l.found, found{f, i})
		}
	}
	return true
}

// differs notes a file that changed or went, and reports whether the cache has what it was.
func (l *activeLoad) differs(was *baseFile) bool {
	if was.owner > 0 {
		l.woken[was.owner] = true
	}
	f := l.records.read(was)
	if f != nil {
		l.known[f.path] = f
	}
	return f != nil
}

// found is a file that is not left; in is where the base has it as it is, or -1.
type found struct {
	*noted
	in int
}

// collect takes the files that are not left from the cache, or has them read.
func (l *activeLoad) collect() {
	for _, f := range l.found {
		is := seen{f.dir + "/" + string(f.name), f.area, f.stat}
		if f.area == areaOther {
			l.files = append(l.files, &file{path: is.path, area: is.area, stat: is.stat})
			continue
		}
		if f.in >= 0 {
			if known := l.records.read(&l.base.files[f.in]); known.current(is) {
				l.files = append(l.files, known)
				continue
			}
		}
		l.want = append(l.want, is)
	}
}

// cacheReader reads single records of the cache.
type cacheReader struct {
	*os.File
	decoder *decoder
}

// openCache opens the cache, and reads what it knows of inputs if there are any.
func (l *activeLoad) openCache(was settled) bool {
	c := l.cache
	f, _, err := regular.Open(l.root, cachePath)
	if err != nil {
		return false
	}
	l.records = &cacheReader{f, newDecoder(l.Store)}
	blocks, whole := c.blocks(f)
	if whole && len(was.Globs) > 0 {
		whole = c.loadInputs(f, blocks)
	}
	if !whole {
		f.Close()
		return false
	}
	c.records = int(l.base.records)
	return true
}

// loadInputs reads what the cache knows of inputs.
func (c *cache) loadInputs(f *os.File, blocks []block) bool {
	var some []block
	for _, b := range blocks {
		var kind [1]byte
		if _, err := f.ReadAt(kind[:], b.at); err != nil {
			return false
		}
		if kind[0] == blockInputs {
			some = append(some, b)
		}
	}
	parts, ok := c.decodeBlocks(f, some)
	for _, p := range parts {
		maps.Copy(c.inputs, p.inputs)
	}
	return ok
}

// read returns what the cache has of a file; nil if that is not just what the base says.
func (c *cacheReader) read(was *baseFile) *file {
	var head [recordHeader]byte
	if _, err := c.ReadAt(head[:], int64(was.at)); was.at == 0 || err != nil {
		return nil
	}
	size := binary.LittleEndian.Uint32(head[:])
	if size > maxBlock {
		return nil
	}
	record := make([]byte, size)
	if _, err := c.ReadAt(record, int64(was.at)+recordHeader); err != nil ||
		binary.LittleEndian.Uint32(head[4:]) != uint32(xxhash.Sum64(record)) {
		return nil
	}
	c.decoder.b, c.decoder.bad = record, false
	f := c.decoder.file()
	if c.decoder.bad || f.racy || hashOf(f.path) != was.path || f.content() != was.content {
		return nil
	}
	f.at = int64(was.at)
	return f
}

// loadAll loads the tree with all of its objects, for those that ask for dormant ones. What this store knows is to be made
// whole before anything else is done with it.
func (s *Store) loadAll() *Tree {
	s.roused.Store(true)
	all, err := Open(s.dir, s.opts)
	if err != nil {
		return NewTree(nil, nil) // the next look has the same error
	}
	defer all.Close()
	t, err := all.load(context.Background(), false)
	if err != nil {
		return NewTree(nil, nil)
	}
	return t
}

// errRoused says that a look came upon something that bears on dormant objects: all of them are to be loaded.
var errRoused = errors.New("dormant objects are to be loaded")
