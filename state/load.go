package state

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"reconcile.dev/reconcile/schemas"
)

// Load looks at every file of the tree and returns what it holds. Files that did not change since they were read, by
// this process or, through the cache, by an earlier one, are not read again.
//
// Records that nobody has read are left unread where they are many, until something of one of them is asked for.
//
// What is wrong with the tree's files is in Tree.Problems. The error is only about the tree as a whole: a folder that
// vanished, or ctx.
func (s *Store) Load(ctx context.Context) (*Tree, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.load(ctx, true)
}

// LoadChanged is Load for a process that decides. changed are the objects of which anything differs from the tree that was
// settled last, or anything that they are judged by, and those that are to be decided again at some time although nothing
// changes. known is false where that cannot be told: then everything is to be decided. With some, objects may be left dormant.
func (s *Store) LoadChanged(ctx context.Context, some bool) (t *Tree, changed []schemas.Ref, known bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.roused.Store(false); some {
		if t, changed, known, err = s.loadActive(ctx); known || err != nil {
			return t, changed, known, err
		}
	}
	s.before = map[string]*file{}
	t, err = s.load(ctx, false)
	before := s.before
	if s.before = nil; err != nil {
		return nil, nil, false, err
	}
	if changed, known = s.changedSince(s.model, before); !known {
		s.large(len(s.model.files), LargeTree/4) // what is made of it takes far more than the files
	}
	return t, changed, known, nil
}

func (s *Store) load(ctx context.Context, leave bool) (*Tree, error) {
	settings := s.readSettings()
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
	// Journals come before the files: a result moves from the one to the other, in this order, and must be seen.
	s.readJournals(m)
	gen := s.generation()
	files, troubles, err := s.look(ctx, m, old, gen, leave)
	if err != nil {
		return nil, fmt.Errorf("load the tree %s: %w", s.dir, err)
	}
	m.reserve(len(files))
	for _, f := range files {
		m.put(f)
	}
	for _, t := range troubles {
		m.troubles[t.path] = t
	}
	s.judgeAll(m)
	m.inputs = s.newInputs(m)
	if _, err := s.readInputs(ctx, m, nil); err != nil {
		return nil, fmt.Errorf("load the tree %s: %w", s.dir, err)
	}
	m.declared = s.newDeclared(m)
	m.declared.look(m.declared.paths())
	s.model, s.seenGen, s.folded = m, gen, nil
	s.roused.Store(false)
	s.cache.finish(m)
	return m.tree(), nil
}

// known are the files that this process, or an earlier one, has read.
func (s *Store) known() map[string]*file {
	switch {
	case s.model == nil:
		return s.cache.load()
	case !sameDecoder(s.model.settings.spec, s.settings):
		return nil // what was too large, or led into the folder of state, may do so no more
	}
	if s.model.dormant != nil {
		known := s.cache.load()
		maps.Copy(known, s.model.files)
		return known
	}
	if s.model.later != nil {
		read := maps.Clone(s.model.files)
		maps.DeleteFunc(read, func(_ string, f *file) bool { return f.unread() })
		return read
	}
	return s.model.files
}

// look scans the folders, unless that was done in the same generation, and reads what is not known already. With leave it
// may leave records unread, for m.
func (s *Store) look(ctx context.Context, m *model, known map[string]*file, gen int64, leave bool) ([]*file, []trouble, error) {
	found, troubles, err := s.scanFirst(ctx, gen, len(known) == 0)
	if err != nil {
		return nil, nil, err
	}
	files := make([]*file, 0, len(found))
	want := found[:0] // never ahead of what is being looked at
	for _, f := range found {
		if old := known[f.path]; old.current(f) {
			files = append(files, old)
		} else {
			want = append(want, f)
		}
	}
	var unread []*file
	if leave {
		want, unread, m.later = s.leave(want)
	}
	if len(want) > LargeTree || s.before == nil {
		s.large(len(files)+len(want), LargeTree)
	}
	files = append(files, unread...)
	read, more, err := s.readFiles(ctx, s.root, want, known)
	return append(files, read...), append(troubles, more...), err
}

// large tells the program if a tree is large of which all is going to be looked at.
func (s *Store) large(files, from int) {
	if files > from && s.opts.Large != nil {
		s.opts.Large(files)
	}
}

// current reports whether a file was not changed since f was read.
func (f *file) current(now seen) bool {
	return f != nil && !f.racy && f.stat == now.stat && f.area == now.area && (f.body != nil || f.area == areaOther)
}

// scanFirst is scanAll, or what Fresh saw, if that was less than a second ago or is watched since.
func (s *Store) scanFirst(ctx context.Context, gen int64, unread bool) ([]seen, []trouble, error) {
	if !s.seenFirst(gen) {
		s.first = nil
		return s.scanAll(ctx, unread)
	}
	found, troubles := s.first.seen()
	s.first = nil
	return found, troubles, nil
}

// scanAll finds all files. unread says that each is going to be read: then the system is asked about it only once it is open.
func (s *Store) scanAll(ctx context.Context, unread bool) ([]seen, []trouble, error) {
	gathers := make([]gather, workers())
	visitors := make([]visitor, len(gathers))
	for i := range gathers {
		gathers[i].watch = s.watch
		visitors[i] = &gathers[i]
	}
	s.watch.restart()
	if err := newScanner(s.root, s.layout(), unread).scan(ctx, visitors...); err != nil {
		return nil, nil, err
	}
	n := 0
	for i := range gathers {
		n += gathers[i].len()
	}
	found := make([]seen, 0, n)
	var troubles []trouble
	for i := range gathers {
		found, troubles = gathers[i].appendTo(found), append(troubles, gathers[i].troubles...)
	}
	return found, troubles, nil
}

// judgeAll computes the cross problems of all spec files.
func (s *Store) judgeAll(m *model) {
	m.indexCase()
	for p, f := range m.files {
		if b, ok := f.body.(*specBody); ok && m.lacks(b) {
			m.missing[p] = true // all of them first: how many there are decides whether names are suggested
		}
	}
	for _, f := range m.files {
		if f.area == areaSpecs {
			s.judge(m, f)
		}
	}
}

// diff returns the objects whose entries differ, but for those that are dormant in one of the trees, and the ledgers that do,
// sorted.
func diff(prev, next *Tree) []schemas.Ref {
	if prev == nil {
		prev = NewTree(nil, nil)
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
	slices.SortFunc(out, schemas.Ref.Compare)
	return out
}

// sameEntry reports whether two entries of one object say the same.
func sameEntry(a, b *Entry) bool {
	return sameObject(a.Object, b.Object) && slices.EqualFunc(a.Problems, b.Problems, equalProblems) &&
		slices.EqualFunc(a.Refs, b.Refs, func(x, y schemas.Reference) bool { return x.To == y.To }) &&
		(a.status == b.status || reflect.DeepEqual(a.Status(), b.Status())) &&
		(a.runs.same(b.runs) || slices.EqualFunc(a.Runs(), b.Runs(), func(x, y *schemas.Run) bool { return x == y || reflect.DeepEqual(x, y) })) &&
		slices.EqualFunc(a.Claims, b.Claims, func(x, y Claim) bool { return reflect.DeepEqual(x, y) }) &&
		maps.Equal(a.Inputs, b.Inputs) && maps.EqualFunc(a.Missing, b.Missing, sameMissing)
}

func sameMissing(a, b Missing) bool {
	return slices.Equal(a.Files, b.Files) && slices.Equal(a.Cached, b.Cached) && slices.Equal(a.Lost, b.Lost)
}

func sameObject(a, b *schemas.Object) bool {
	if a == b || a == nil || b == nil {
		return a == b
	}
	return a.Digest == b.Digest && a.Path == b.Path && a.Metadata.Name == b.Metadata.Name &&
		maps.Equal(a.Metadata.Labels, b.Metadata.Labels) && maps.Equal(a.Metadata.Annotations, b.Metadata.Annotations)
}
