package state

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"reconcile.dev/reconcile/schemas"
)

// Load reads the whole tree. Files that did not change since they were read, by this process or, through the cache,
// by an earlier one, are not read again.
//
// Many records that are not in the cache are deferred: they are read when one of them is accessed.
//
// Problems of the tree's files are in Tree.Problems. The error is only about the tree as a whole: a folder that
// was removed, or ctx.
func (s *Store) Load(ctx context.Context) (*Tree, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.load(ctx, true)
}

func (s *Store) load(ctx context.Context, leave bool) (*Tree, error) {
	settings := s.newSettings()
	s.useSettings(settings.spec)
	if err := s.checkFolders(s.layout()); err != nil {
		return nil, err
	}
	old := s.known()
	if s.before != nil {
		s.before = old
	}
	m := newModel(s.layout())
	m.settings = settings
	// Journals come before the files: a result moves from a journal to a file, in this order, and must not be missed.
	s.readJournals(m)
	gen := s.generation()
	files, troubles, err := s.scanAndRead(ctx, m, old, gen, leave)
	if err != nil {
		return nil, fmt.Errorf("load the tree %s: %w", s.dir, err)
	}
	m.reserve(len(files))
	for _, f := range files {
		m.put(f)
	}
	for _, t := range troubles {
		m.scanErrors[t.path] = t
	}
	s.crossCheckAll(m, "")
	m.inputs = s.newInputs(m)
	if _, err := s.readInputs(ctx, m, nil); err != nil {
		return nil, fmt.Errorf("load the tree %s: %w", s.dir, err)
	}
	m.declared = s.newDeclaredOutputs(m)
	m.declared.refresh(m.declared.paths())
	s.model, s.seenGen, s.folded = m, gen, nil
	s.needsFullLoad.Store(false)
	s.cache.finishLoad(m)
	return m.tree(), nil
}

// known returns the files that this process, or an earlier one, has read.
func (s *Store) known() map[string]*file {
	switch {
	case s.model == nil:
		return s.cache.load("")
	case !sameDecoder(s.model.settings.spec, s.settings):
		return nil // the limits or the folder of state changed
	}
	if s.model.dormant != nil {
		known := s.cache.load("")
		maps.Copy(known, s.model.files)
		return known
	}
	if s.model.deferred != nil {
		read := maps.Clone(s.model.files)
		maps.DeleteFunc(read, func(_ string, f *file) bool { return f.isDeferred() })
		return read
	}
	return s.model.files
}

// scanAndRead scans the folders, unless that was done in the same generation, and reads the files that are not known
// already. With leave it may defer records, for m.
func (s *Store) scanAndRead(ctx context.Context, m *model, known map[string]*file, gen int64, leave bool) ([]*file, []scanError, error) {
	found, troubles, err := s.scanFirst(ctx, gen, len(known) == 0)
	if err != nil {
		return nil, nil, err
	}
	files := make([]*file, 0, len(found))
	want := found[:0] // never longer than the part of found that was iterated
	for _, f := range found {
		if old := known[f.path]; old.current(f) {
			files = append(files, old)
		} else {
			want = append(want, f)
		}
	}
	var unread []*file
	if leave {
		want, unread, m.deferred = s.deferRecords(want)
	}
	if len(want) > largeTree || s.before == nil {
		s.large(len(files)+len(want), largeTree)
	}
	files = append(files, unread...)
	read, more, err := s.readFiles(ctx, s.root, want, known)
	return append(files, read...), append(troubles, more...), err
}

// large notifies the program of a large tree that is loaded completely.
func (s *Store) large(files, from int) {
	if files > from && s.opts.Large != nil {
		s.opts.Large(files)
	}
}

// current reports whether a file was not changed since f was read.
func (f *file) current(now scanEntry) bool {
	return f != nil && !f.racy && f.stat == now.stat && f.area == now.area && (f.body != nil || f.area == areaOther)
}

// scanFirst returns the scan of Fresh, if it is less than a second old or was watched since, or else that of scanAll.
func (s *Store) scanFirst(ctx context.Context, gen int64, unread bool) ([]scanEntry, []scanError, error) {
	if !s.freshScanValid(gen) {
		s.freshScan = nil
		return s.scanAll(ctx, unread)
	}
	found, troubles := s.freshScan.entries()
	s.freshScan = nil
	return found, troubles, nil
}

// scanAll finds all files. unread says that each of them is going to be read: then its stat is read once it is open.
func (s *Store) scanAll(ctx context.Context, unread bool) ([]scanEntry, []scanError, error) {
	s.settledScan = nil
	s.watch.Restart()
	sc := newScanner(s.root, s.layout(), unread)
	return s.collect(ctx, sc, sc.tops())
}

// collect finds all files of some folders and those below.
func (s *Store) collect(ctx context.Context, sc *treeScanner, from []*scanFolder) ([]scanEntry, []scanError, error) {
	gathers := make([]fileCollector, workers())
	visitors := make([]visitor, len(gathers))
	for i := range gathers {
		gathers[i].watch, gathers[i].layout = s.watch, sc.layout
		visitors[i] = &gathers[i]
	}
	if err := sc.scanFrom(ctx, from, visitors...); err != nil {
		return nil, nil, err
	}
	n := 0
	for i := range gathers {
		n += gathers[i].len()
	}
	found := make([]scanEntry, 0, n)
	var troubles []scanError
	for i := range gathers {
		found, troubles = gathers[i].appendTo(found), append(troubles, gathers[i].scanErrors...)
	}
	return found, troubles, nil
}

// crossCheckAll computes the cross problems of the spec files of a kind, of all for "".
func (s *Store) crossCheckAll(m *model, kind string) {
	m.indexCase()
	for p, f := range m.files {
		if b, ok := f.body.(*specBody); ok && m.hasMissingReference(b) {
			m.missing[p] = true // all of them first: their number decides whether names are suggested
		}
	}
	for _, f := range m.files {
		if b, ok := f.body.(*specBody); ok && (kind == "" || b.ref.Kind == kind) {
			s.crossCheck(m, f)
		}
	}
}

// diffModels returns the objects whose entries differ, except those that are dormant in one of the trees, and the ledgers that
// differ, sorted.
func diffModels(prev, next *Tree) []schemas.Ref {
	if prev == nil {
		prev = NewTree(nil, nil, nil)
	}
	var out []schemas.Ref
	for _, t := range []*Tree{next, prev} {
		other := prev
		if t == prev {
			other = next
		}
		for _, shelf := range t.shelves {
			for _, e := range shelf {
				o := other.loaded(e.Ref)
				if o == nil && other.dormant.has(e.Ref) {
					continue
				}
				if o == nil || t == next && !sameEntry(o, e) {
					out = append(out, e.Ref)
				}
			}
		}
	}
	out = append(out, diffLedgers(prev, next)...)
	out = append(out, diffCheckpoints(prev, next)...)
	slices.SortFunc(out, schemas.Ref.Compare)
	return out
}

// loadDeferred makes the store complete: Load may have deferred records.
func (s *Store) loadDeferred(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.model == nil || s.model.deferred == nil {
		return nil
	}
	_, err := s.load(ctx, false)
	return err
}

// reload loads everything and compares.
func (s *Store) reload(ctx context.Context, prev *Tree) (*Tree, []schemas.Ref, error) {
	next, err := s.load(ctx, false)
	if err != nil {
		return nil, nil, err
	}
	changed := diffModels(prev, next)
	if prev != nil {
		for o := range prev.dormant.each() {
			changed = append(changed, o.Ref) // whether it changed is not known
		}
	}
	for _, ref := range s.moved {
		if ref.Kind == LedgerKind {
			changed = append(changed, ref)
		}
	}
	s.moved = nil
	slices.SortFunc(changed, schemas.Ref.Compare)
	return next, slices.Compact(changed), nil
}
