package state

import (
	"maps"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// NewTree makes a tree of the given table of kinds, settings, problems and entries, and links the referrers of its objects. It owns the
// entries. Later entries of a Ref replace earlier ones.
func NewTree(kinds schemas.Kinds, settings *schemas.SettingsSpec, problems []schemas.Problem, entries ...*Entry) *Tree {
	if settings == nil {
		settings = new(schemas.SettingsSpec)
		settings.Default()
	}
	t := &Tree{kinds: kinds, shelves: map[string][]*Entry{}, referrers: map[schemas.Ref][]schemas.Ref{}, settings: settings}
	for _, e := range entries {
		t.shelves[e.Kind] = append(t.shelves[e.Kind], e)
	}
	for kind, shelf := range t.shelves {
		slices.SortStableFunc(shelf, func(a, b *Entry) int { return strings.Compare(a.Name, b.Name) })
		t.shelves[kind] = lastOfEach(shelf)
	}
	t.expandAll()
	for kind := range t.shelves {
		for _, e := range t.shelves[kind] {
			t.link(e)
		}
	}
	for ref, from := range t.referrers {
		slices.SortFunc(from, schemas.Ref.Compare)
		t.referrers[ref] = slices.Compact(from)
	}
	t.problems = sortProblems(problems)
	return t
}

func lastOfEach(shelf []*Entry) []*Entry {
	out := shelf[:0]
	for i, e := range shelf {
		if i+1 < len(shelf) && shelf[i+1].Name == e.Name {
			continue
		}
		out = append(out, e)
	}
	return out
}

func (t *Tree) link(e *Entry) {
	for _, r := range references(e) {
		t.referrers[r] = append(t.referrers[r], e.Ref)
	}
}

// With returns a copy of the tree in which the given entries replace the old entries of the same kind and name. An entry
// that is Gone and has neither status, runs nor claims is removed. The receiver is unchanged; unchanged parts are shared.
func (t *Tree) With(entries ...*Entry) *Tree {
	next := new(Tree)
	*next = *t
	next.shelves = maps.Clone(t.shelves)
	cloned := map[string]bool{}
	linked := false
	next.activate(entries)
	was := make([][]schemas.Ref, len(entries))
	for at, e := range entries {
		shelf := next.shelves[e.Kind]
		if !cloned[e.Kind] {
			shelf = slices.Clone(shelf)
			cloned[e.Kind] = true
		}
		i, ok := find(shelf, e.Name)
		if ok {
			was[at] = references(shelf[i])
		}
		switch {
		case empty(e) && ok:
			shelf = slices.Delete(shelf, i, i+1)
		case empty(e):
		case ok:
			shelf[i] = e
		default:
			shelf = slices.Insert(shelf, i, e)
		}
		next.shelves[e.Kind] = shelf
	}
	next.expandChanged(t, entries)
	relink := func(ref schemas.Ref, was []schemas.Ref) {
		if is := references(next.loaded(ref)); !slices.Equal(was, is) {
			if !linked {
				next.referrers = maps.Clone(t.referrers)
				linked = true
			}
			next.relink(ref, was, is)
		}
	}
	for at, e := range entries {
		relink(e.Ref, was[at])
	}
	for _, ref := range next.Expanded() {
		if !slices.ContainsFunc(entries, func(e *Entry) bool { return e.Ref == ref }) {
			relink(ref, references(t.loaded(ref)))
		}
	}
	return next
}

func (t *Tree) relink(from schemas.Ref, was, is []schemas.Ref) {
	for _, to := range was {
		t.referrers[to] = slices.DeleteFunc(slices.Clone(t.referrers[to]), func(r schemas.Ref) bool { return r == from })
		if len(t.referrers[to]) == 0 {
			delete(t.referrers, to)
		}
	}
	for _, to := range is {
		list := t.referrers[to]
		if i, ok := slices.BinarySearchFunc(list, from, schemas.Ref.Compare); !ok {
			t.referrers[to] = slices.Insert(slices.Clone(list), i, from)
		}
	}
}

// tree makes a tree of everything.
func (m *model) tree() *Tree { return m.treeOf(func(schemas.Ref) bool { return true }) }

// treeOf makes a tree with the entries of some objects.
func (m *model) treeOf(wanted func(schemas.Ref) bool) *Tree {
	refs := m.refs()
	entries := make([]*Entry, 0, len(refs))
	for _, ref := range refs {
		if !wanted(ref) {
			continue
		}
		if e := m.entry(ref); !empty(e) {
			entries = append(entries, e)
		}
	}
	t := NewTree(m.layout.kinds, m.settings.spec, m.problems(), entries...)
	t.ledgers, t.checkpoints, t.deferred, t.dormant = m.ledgers(), m.checkpoints(), m.deferred, m.dormant
	return t
}
