package state

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/regular"
)

// In a tree whose objects are mostly dormant, a run loads only the others: the active objects, and those that differ from
// the tree that was settled last. A change wakes the dormant objects that it affects.

// activeLoad loads the active objects of a tree.
type activeLoad struct {
	store   *Store
	look    bool // nothing is decided: what changed since the tree was settled is not asked for
	first   *freshScan
	base    *base
	model   *model
	found   []activeFile     // the files that are not skipped
	woken   map[int]bool     // the indices of dormant objects with a changed file
	known   map[string]*file // the content of changed files when the tree was settled
	records *cacheReader
	later   map[string]*file // what the cache got after the tree was settled
	files   []*file          // as they are in the cache, those that are in later excepted
	changed []*file          // as they are in later
	want    []scanEntry      // files to read
}

// loadActive is LoadChanged without the dormant objects. If sum is nil, it did nothing, and the caller must load
// everything. To look, it scans the tree itself, also while other processes run.
func (s *Store) loadActive(ctx context.Context, look bool) (t *Tree, changed []schemas.Ref, sum *Summary, err error) {
	if s.model != nil || s.opts.NoCache || !look && s.freshScan == nil {
		return nil, nil, nil, nil
	}
	settings := s.readSettings()
	s.useSettings(settings.spec)
	if s.checkFolders(s.layout()) != nil {
		return nil, nil, nil, nil
	}
	m := newModel(s.layout())
	m.settings = settings
	s.readJournals(m) // before the scan, as load does
	gen := s.generation()
	was, ok := s.readSettled()
	if !ok || !s.applies(was) || !look && (m.journaled() || was.archives(s.opts.Now())) {
		return nil, nil, nil, nil
	}
	if look {
		s.freshScan = &freshScan{gen: gen, layout: m.layout}
		if err := s.freshScan.scan(ctx, s.root); err != nil {
			return nil, nil, nil, fmt.Errorf("load the tree %s: %w", s.dir, err)
		}
		s.freshScan.at = s.opts.FileNow()
	}
	if !s.freshScanValid(gen) || s.freshScan.hasErrors() {
		return nil, nil, nil, nil
	}
	l := &activeLoad{store: s, look: look, first: s.freshScan, model: m, woken: map[int]bool{}, known: map[string]*file{}}
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
	read = append(read, l.changed...)
	for _, f := range append(l.files, read...) {
		m.put(f)
	}
	if !l.wakeAffected(read) || !m.wake(m.dormantInJournals()...) {
		return nil, false, nil
	}
	l.store.crossCheckAll(m, "")
	m.inputs = l.store.newInputs(m)
	if _, err := l.store.readInputs(ctx, m, nil); err != nil {
		return nil, false, fmt.Errorf("load the tree %s: %w", l.store.dir, err)
	}
	m.declared = l.store.newDeclaredOutputs(m)
	m.declared.refresh(m.declared.paths())
	if l.look {
		return nil, true, nil
	}
	changed, ok = l.store.since(m, was, l.base, l.known).refs()
	return changed, ok, nil
}

// wakeAffected wakes the dormant objects that changed files concern, of which some are not as in the base.
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
			if known := l.cached(f); known.current(is) {
				l.files = append(l.files, known)
				continue
			}
		}
		if known := l.later[is.path]; known.current(is) {
			l.changed = append(l.changed, known)
			continue
		}
		l.want = append(l.want, is)
	}
}

// cached returns the content of an unchanged file; nil if the cache does not have it.
func (l *activeLoad) cached(f activeFile) *file {
	was := l.base.file(f.in)
	if f.area == areaLedgers {
		if ledger := l.records.readLedger(was); ledger != nil {
			return ledger
		}
	}
	return l.records.read(was)
}

// openCache opens the cache, and reads what it got since the tree was settled, and its data about inputs if the tree has inputs.
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
	if !whole || !l.describesCache(fi.Size()) || !l.readLater(blocks) {
		f.Close()
		return false
	}
	c.records = int(l.base.records) + len(l.later)
	return true
}

// describesCache reports whether the base has the offsets of this cache: a process that only looks may have written it again since. A cache
// that grew much, by looks without a run, is compacted by a load of everything.
func (l *activeLoad) describesCache(size int64) bool {
	last := l.base.last
	return last.at == 0 || size <= 2*int64(last.at)+maxLookGrowth && l.records.read(last) != nil
}

// readLater reads the blocks of files behind the last record that the base has.
func (l *activeLoad) readLater(blocks []block) bool {
	first, _ := slices.BinarySearchFunc(blocks, int64(l.base.last.at), func(b block, at int64) int { return cmp.Compare(b.at, at) })
	parts, ok := l.store.cache.decodeBlocks(l.records.File, blocks[first:], "")
	l.later = map[string]*file{}
	for _, p := range parts {
		for _, f := range p.files {
			l.later[f.path] = f
		}
	}
	return ok
}

// maxLookGrowth is how many bytes looks may add to a cache of any size.
const maxLookGrowth = 4 << 20

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
	defer s.watch.Wait() // changes from now on are reported
	if s.needsFullLoad.Store(false); some {
		if t, changed, was, err = s.loadActive(ctx, false); was != nil || err != nil {
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
		s.large(len(s.model.files), largeTree/4) // the memory for decisions is much larger than for the files
	}
	return t, changed, was, nil
}

// LoadLazily is Load for a caller that reads a few objects: dormant ones are loaded when they are asked for.
func (s *Store) LoadLazily(ctx context.Context) (*Tree, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.needsFullLoad.Store(false)
	if t, _, was, err := s.loadActive(ctx, true); was != nil || err != nil {
		return t, err
	}
	return s.load(ctx, true)
}
