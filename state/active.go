package state

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"sync"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/regular"
)

// In a tree whose objects are mostly dormant, a run loads only the others: the active objects, and those that differ from
// the tree that was settled last. A change wakes the dormant objects that it affects.

// activeLoad loads the active objects of a tree.
type activeLoad struct {
	store   *Store
	first   *freshScan
	base    *base
	model   *model
	found   []activeFile     // the files that are not skipped
	woken   map[int]bool     // the indices of dormant objects with a changed file
	known   map[string]*file // the content of changed files when the tree was settled
	records *cacheReader
	files   []*file     // as they are in the cache
	want    []scanEntry // files to read
}

// loadActive is LoadChanged without the dormant objects. If sum is nil, it did nothing, and the caller must load
// everything.
func (s *Store) loadActive(ctx context.Context) (t *Tree, changed []schemas.Ref, sum *Summary, err error) {
	if s.model != nil || s.opts.NoCache || s.freshScan == nil {
		return nil, nil, nil, nil
	}
	settings := s.readSettings()
	s.useSettings(settings.spec)
	if s.checkFolders(s.layout()) != nil {
		return nil, nil, nil, nil
	}
	m := newModel(s.layout())
	m.settings = settings
	s.readJournals(m)
	if m.journaled() {
		return nil, nil, nil, nil
	}
	gen := s.generation()
	was, ok := s.readSettled()
	due := was.Summary.Archive
	if !ok || !due.IsZero() && !s.opts.Now().Before(due) || !s.freshScanValid(gen) || s.freshScan.hasErrors() {
		return nil, nil, nil, nil
	}
	l := &activeLoad{store: s, first: s.freshScan, model: m, woken: map[int]bool{}, known: map[string]*file{}}
	if l.base = s.readBase(was, m); l.base == nil || !s.shouldSkipDormant(l.base) || !l.openCache(was) {
		return nil, nil, nil, nil
	}
	if changed, ok, err = l.load(ctx, was); !ok || err != nil {
		l.records.Close()
		return nil, nil, nil, err
	}
	s.freshScan, s.model, s.seenGen, s.folded = nil, m, gen, nil
	s.cache.finishLoad(m)
	return m.tree(), changed, &was.Summary, nil
}

// shouldSkipDormant reports whether a load skips dormant objects: there are many of them, and the cache needs no
// compaction.
func (s *Store) shouldSkipDormant(b *base) bool {
	return newDormants(b).files() >= s.opts.DormantFrom && b.records <= 2*uint64(b.len())+1000
}

// load makes the model. Until it knows that this is possible, it changes nothing but the cache.
func (l *activeLoad) load(ctx context.Context, was settled) (changed []schemas.Ref, ok bool, err error) {
	if !l.compare() {
		return nil, false, nil
	}
	m := l.model
	m.dormant = newDormants(l.base)
	m.dormant.activated = l.woken
	m.dormant.reader = &dormantReader{base: l.base, from: l.reader(), objects: map[int]*dormantObject{}, unready: map[string]int{}, listed: map[string]listedKind{}}
	l.collect()
	read, troubles, err := l.store.readFiles(ctx, l.store.root, l.want, l.known)
	if err != nil || len(troubles) > 0 {
		return nil, false, err
	}
	for _, f := range append(l.files, read...) {
		m.put(f)
	}
	if !l.wakeAffected(read) {
		return nil, false, nil
	}
	l.store.crossCheckAll(m, "")
	m.inputs = l.store.newInputs(m)
	if _, err := l.store.readInputs(ctx, m, nil); err != nil {
		return nil, false, fmt.Errorf("load the tree %s: %w", l.store.dir, err)
	}
	m.declared = l.store.newDeclaredOutputs(m)
	m.declared.refresh(m.declared.paths())
	changed, ok = l.store.since(m, was, l.base, l.known).refs()
	return changed, ok, nil
}

// wakeAffected wakes the dormant objects that changed files concern, of which some were read again.
func (l *activeLoad) wakeAffected(read []*file) bool {
	m := l.model
	for _, f := range read {
		if was, there := l.base.named(f.path); (!there || was.content != f.content()) && !m.wake(m.dormant.affected(f)...) {
			return false
		}
	}
	for p, f := range l.known {
		if now := m.files[p]; (now == nil || now.content() != f.content()) && !m.wake(m.dormant.affected(f)...) {
			return false
		}
	}
	return true
}

// compare finds the differences from the base, and reports whether the former content of changed files is known.
func (l *activeLoad) compare() bool {
	there, others := make([]bool, l.base.len()), map[int]bool{}
	order, misses := make([]int32, 0, l.base.len()+1), 0
	i := -1
	for f := range l.first.each() {
		guess := i + 1
		i = l.base.findByStat(f.look, guess)
		switch {
		case i >= 0:
			there[i] = true
		case f.area == areaOther:
			others[l.base.find(hashOf(f.dir+"/"+string(f.name)))] = true // their content is not known
		}
		if i < 0 || i >= l.base.frozen.len() && l.base.owner(i) == 0 {
			l.found = append(l.found, activeFile{f, i})
		} else if i != guess {
			misses++
		}
		order = append(order, int32(i))
	}
	for i, is := range there {
		if !is && !l.base.thawedFile(i) && !l.noteChanged(l.base.file(i)) && !others[i] {
			return false
		}
	}
	if misses > len(there)/2 {
		l.base.order = order
	}
	l.wake(order)
	return true
}

// wake finds the files of the woken objects that did not change. order are the indices of the scanned files.
func (l *activeLoad) wake(order []int32) {
	if len(l.woken) == 0 {
		return
	}
	woken := make([]bool, 1+len(l.base.thawed)+len(l.base.recent)) // by owner
	for i := range l.woken {
		woken[1+i] = true
	}
	for list := range l.first.lists() {
		for j, i := range order[:len(list)] {
			if i >= 0 && woken[l.base.owner(int(i))] {
				l.found = append(l.found, activeFile{&list[j], int(i)})
			}
		}
		order = order[len(list):]
	}
}

// noteChanged records a changed or deleted file, and reports whether the cache has its former content.
func (l *activeLoad) noteChanged(was baseFile) bool {
	if was.owner > 0 {
		l.woken[int(was.owner)-1] = true
	}
	f := l.records.read(was)
	if f != nil {
		l.known[f.path] = f
	}
	return f != nil
}

// activeFile is a file that is not skipped; in is the index of the unchanged file in the base, or -1.
type activeFile struct {
	*scannedFile
	in int
}

// collect takes the files that are not skipped from the cache, or reads them.
func (l *activeLoad) collect() {
	at := func(f activeFile) uint64 {
		if f.in < 0 {
			return 0
		}
		return l.base.file(f.in).at
	}
	slices.SortFunc(l.found, func(a, b activeFile) int { return cmp.Compare(at(a), at(b)) })
	l.records.ahead = readMany
	defer func() { l.records.ahead = readOne }()
	for _, f := range l.found {
		is := scanEntry{f.dir + "/" + string(f.name), f.area, f.stat}
		if f.area == areaOther {
			l.files = append(l.files, &file{path: is.path, area: is.area, stat: is.stat})
			continue
		}
		if f.in >= 0 {
			if known := l.records.read(l.base.file(f.in)); known.current(is) {
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
	window  []byte // what was read last, which begins at from
	from    int64
	ahead   int // how many bytes are read at once
}

// One record that is read alone, and records that are read in their order.
const readOne, readMany = 4 << 10, 128 << 10

// bytes returns n bytes of the cache, valid until the next call; nil if they are not there.
func (c *cacheReader) bytes(at int64, n int) []byte {
	if at < c.from || at+int64(n) > c.from+int64(len(c.window)) {
		size := max(n, c.ahead)
		if cap(c.window) < size {
			c.window = make([]byte, size)
		}
		got, _ := c.ReadAt(c.window[:size], at) // less at the end of the file
		if c.window, c.from = c.window[:got], at; got < n {
			return nil
		}
	}
	return c.window[at-c.from:][:n]
}

// openCache opens the cache, and reads its data about inputs if the tree has inputs.
func (l *activeLoad) openCache(was settled) bool {
	c := l.store.cache
	f, fi, err := regular.Open(l.store.root, cachePath)
	if err != nil {
		return false
	}
	l.records = &cacheReader{File: f, decoder: newDecoder(l.store), ahead: readOne}
	blocks, whole := c.blocks(f)
	if whole && len(was.Globs) > 0 {
		whole = c.loadInputs(f, blocks)
	}
	if !whole || !l.describesCache(fi.Size()) {
		f.Close()
		return false
	}
	c.records = int(l.base.records)
	return true
}

// describesCache reports whether the base has the offsets of this cache: a process that only looks may have written it again since. A cache
// that grew much, by looks without a run, is compacted by a load of everything.
func (l *activeLoad) describesCache(size int64) bool {
	var last baseFile
	for i := range l.base.len() {
		if f := l.base.file(i); f.at > last.at && !l.base.thawedFile(i) {
			last = f
		}
	}
	return last.at == 0 || size <= 2*int64(last.at)+maxLookGrowth && l.records.read(last) != nil
}

// maxLookGrowth is how many bytes looks may add to a cache of any size.
const maxLookGrowth = 4 << 20

// read returns the cached content of a file; nil if it does not match the base.
func (c *cacheReader) read(was baseFile) *file {
	head := c.bytes(int64(was.at), recordHeader)
	if was.at == 0 || head == nil {
		return nil
	}
	size, sum := binary.LittleEndian.Uint32(head), binary.LittleEndian.Uint32(head[4:])
	if size > maxBlock {
		return nil
	}
	record := slices.Clone(c.bytes(int64(was.at)+recordHeader, int(size))) // decoded, it is pointed into
	if record == nil || sum != uint32(xxhash.Sum64(record)) {
		return nil
	}
	c.decoder.B, c.decoder.Bad = record, false
	f := c.decoder.file()
	if c.decoder.Bad || f.racy || hashOf(f.path) != was.path || f.content() != was.content {
		return nil
	}
	f.at = int64(was.at)
	return f
}

// ownedFiles reads the files of dormant objects from the cache.
type ownedFiles struct {
	base    *base
	records *cacheReader
	first   []int32 // by owner: where its files begin in files; nil until they are asked for
	files   []int32 // the indices of files in base, by owner
}

// of returns the files of the object with that index; nil if one of them is not there.
func (o *ownedFiles) of(i int) (files []*file) {
	o.sort()
	for _, at := range o.files[o.first[i]:o.first[i+1]] {
		f := o.records.read(o.base.file(int(at)))
		if f == nil {
			return nil
		}
		files = append(files, f)
	}
	return files
}

// sort sorts the files of the base by the dormant object that owns them.
func (o *ownedFiles) sort() {
	if o.first != nil {
		return
	}
	b := o.base
	o.first = make([]int32, len(b.thawed)+len(b.recent)+2)
	each := func(visit func(i, owner int)) {
		for i := range b.len() {
			if owner := b.owner(i); owner > 0 && !b.thawedFile(i) {
				visit(i, owner)
			}
		}
	}
	each(func(_, owner int) { o.first[owner+1]++ })
	for n := 1; n < len(o.first); n++ {
		o.first[n] += o.first[n-1]
	}
	o.files = make([]int32, o.first[len(o.first)-1])
	each(func(i, owner int) {
		o.files[o.first[owner]] = int32(i)
		o.first[owner]++
	})
}

// reader returns what reads a dormant object: from the cache, else with the whole tree. Then the store must reload everything before its next
// use.
func (l *activeLoad) reader() func(i int) *dormantObject {
	owned, s, layout := &ownedFiles{base: l.base, records: l.records}, l.store, l.model.layout
	whole := sync.OnceValue(func() *Tree {
		s.needsFullLoad.Store(true)
		if all, err := Open(s.dir, s.opts); err == nil {
			defer all.Close()
			if t, err := all.load(context.Background(), false); err == nil {
				return t
			}
		}
		return NewTree(nil, nil, nil) // the next load returns the same error
	})
	return func(i int) *dormantObject {
		ref := owned.base.ref(i)
		if files := owned.of(i); files != nil {
			return &dormantObject{files, layout.entryOf(ref, files)}
		}
		return &dormantObject{entry: whole().Entry(ref)}
	}
}

// LoadChanged loads the tree, for a process that decides, and returns the objects that changed since it was settled last.
// changed are those that differ from the settled tree, or depend on a difference, and those that are decided again at some
// time although nothing changes. was is what Settle recorded then; nil if that is not known: then everything must be decided. With
// some, objects may be left dormant.
func (s *Store) LoadChanged(ctx context.Context, some bool) (t *Tree, changed []schemas.Ref, was *Summary, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.needsFullLoad.Store(false); some {
		if t, changed, was, err = s.loadActive(ctx); was != nil || err != nil {
			return t, changed, was, err
		}
	}
	s.before = map[string]*file{}
	t, err = s.load(ctx, false)
	before := s.before
	if s.before = nil; err != nil {
		return nil, nil, nil, err
	}
	if changed, was = s.changedSince(s.model, before); was == nil {
		s.large(len(s.model.files), LargeTree/4) // the memory for decisions is much larger than for the files
	}
	return t, changed, was, nil
}

// LoadLazily is Load for a caller that reads a few objects: after Fresh, which scans, dormant objects are loaded when they are asked for.
func (s *Store) LoadLazily(ctx context.Context) (*Tree, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.needsFullLoad.Store(false)
	if t, _, was, err := s.loadActive(ctx); was != nil || err != nil {
		return t, err
	}
	return s.load(ctx, true)
}
