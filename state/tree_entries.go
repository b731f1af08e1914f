package state

import (
	"iter"
	"maps"
	"reflect"
	"slices"
	"sort"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// Entry returns the entry of ref, or nil.
func (t *Tree) Entry(ref schemas.Ref) *Entry {
	if e := t.loaded(ref); e != nil {
		return e
	}
	return t.dormant.entry(ref)
}

// Exists reports whether an object has a spec, without loading it.
func (t *Tree) Exists(ref schemas.Ref) bool {
	if e := t.loaded(ref); e != nil {
		return !e.Gone()
	}
	return t.dormant.has(ref)
}

// StatusOf returns the status of an object; nil if it has none.
func (t *Tree) StatusOf(ref schemas.Ref) schemas.Status {
	if e := t.Entry(ref); e != nil {
		return e.Status()
	}
	return nil
}

// loaded is Entry without loading.
func (t *Tree) loaded(ref schemas.Ref) *Entry {
	shelf := t.shelves[ref.Kind]
	if i, ok := find(shelf, ref.Name); ok {
		return shelf[i]
	}
	return nil
}

// Entries returns the entries of all objects of a kind, dormant ones too, sorted by name. It loads dormant ones: callers
// that do not need them use Active.
func (t *Tree) Entries(kind string) []*Entry {
	if t.mayHaveDormant(kind) {
		return t.entries(kind)
	}
	return t.shelves[kind]
}

// Since yields the differences of a kind between an earlier tree and this one, by name: the earlier entry and the current
// one, one of which is nil if the object was added or removed. If was is nil, every object is new.
func (t *Tree) Since(was *Tree, kind string) iter.Seq2[*Entry, *Entry] {
	return func(yield func(was, is *Entry) bool) {
		var old []*Entry
		now := t.shelves[kind]
		switch {
		case was != nil && t.SameBase(was):
			old = was.shelves[kind]
		case was != nil:
			old, now = was.Entries(kind), t.Entries(kind)
		default:
			now = t.Entries(kind)
		}
		if len(old) == len(now) && (len(now) == 0 || &old[0] == &now[0]) {
			return
		}
		for len(old)+len(now) > 0 {
			var a, b *Entry
			switch {
			case len(old) > 0 && len(now) > 0 && old[0] == now[0]:
				old, now = old[1:], now[1:]
				continue
			case len(now) == 0 || len(old) > 0 && old[0].Name < now[0].Name:
				a, old = old[0], old[1:]
			case len(old) == 0 || now[0].Name < old[0].Name:
				b, now = now[0], now[1:]
			default:
				a, b, old, now = old[0], now[0], old[1:], now[1:]
			}
			if a == nil {
				a = was.dormantEntry(b.Ref) // it was woken
			}
			if !yield(a, b) {
				return
			}
		}
	}
}

func (t *Tree) dormantEntry(ref schemas.Ref) *Entry {
	if t == nil {
		return nil
	}
	return t.dormant.entry(ref)
}

// Kinds returns the kinds that have entries in the tree, dormant ones included, sorted.
func (t *Tree) Kinds() []string {
	kinds := slices.Collect(maps.Keys(t.shelves))
	for _, kind := range t.dormant.kinds() {
		if t.dormant.count(kind) > 0 {
			kinds = append(kinds, kind)
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// Len returns the number of entries of all kinds in the tree, dormant ones included.
func (t *Tree) Len() int {
	n := 0
	for _, s := range t.shelves {
		n += len(s)
	}
	for _, kind := range t.dormant.kinds() {
		n += t.dormant.count(kind)
	}
	return n
}

// Referrers returns the refs of the objects that refer to ref in their specs, dormant ones included, sorted. ref itself need
// not exist.
func (t *Tree) Referrers(ref schemas.Ref) []schemas.Ref {
	dormant := t.dormantReferrers(ref)
	if len(dormant) == 0 {
		return t.referrers[ref]
	}
	all := slices.Concat(t.referrers[ref], dormant)
	slices.SortFunc(all, schemas.Ref.Compare)
	return all
}

// ReferrersOf is Referrers for one kind.
func (t *Tree) ReferrersOf(ref schemas.Ref, kind string) []schemas.Ref {
	all := t.referrers[ref]
	if t.mayHaveDormant(kind) {
		all = t.Referrers(ref)
	}
	from := sort.Search(len(all), func(i int) bool { return all[i].Kind >= kind })
	n := sort.Search(len(all)-from, func(i int) bool { return all[from+i].Kind > kind })
	return all[from : from+n]
}

// Problems returns the problems of all files of the tree, also those whose reading was deferred, sorted by place.
func (t *Tree) Problems() []schemas.Problem {
	if t.deferred == nil {
		return t.problems
	}
	t.deferred.read()
	return sortProblems(slices.Concat(t.problems, t.deferred.problems))
}

func empty(e *Entry) bool {
	return e.Gone() && !e.HasStatus() && e.RunCount() == 0 && len(e.Claims) == 0
}

// EntriesAt returns the entries of the sound objects whose spec files have these paths, in no order. It loads no others.
func (t *Tree) EntriesAt(paths []string) (out []*Entry) {
	at := make(map[string]bool, len(paths))
	for _, p := range paths {
		at[p] = true
	}
	add := func(e *Entry) {
		if e != nil && e.Object != nil && at[e.Object.Path] {
			out = append(out, e)
		}
	}
	for _, shelf := range t.shelves {
		for _, e := range shelf {
			add(e)
		}
	}
	for i := range t.dormant.at(paths) {
		add(t.dormant.reader.object(i).entry)
	}
	return out
}

// entries returns those of a kind, including dormant ones, which it loads.
func (t *Tree) entries(kind string) []*Entry {
	r, loaded := t.dormant.reader, t.shelves[kind]
	r.mu.Lock()
	last := r.listed[kind]
	r.mu.Unlock()
	if last.dormant == t.dormant && len(last.loaded) == len(loaded) && (len(loaded) == 0 || &last.loaded[0] == &loaded[0]) {
		return last.all
	}
	all := slices.Clone(loaded)
	for i := range t.dormant.indexed(kind) {
		if e := r.object(i).entry; e != nil {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b *Entry) int { return strings.Compare(a.Name, b.Name) })
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listed[kind] = listedKind{loaded, t.dormant, all}
	return all
}

// entry makes the entry of an object from its files; without files it is empty.
func (m *model) entry(ref schemas.Ref) *Entry {
	e := &Entry{Ref: ref}
	if s := m.slots[ref]; s != nil {
		s.fill(e)
	}
	if e.StatusPath == "" {
		e.StatusPath = m.layout.statusPath(ref)
	}
	m.fillJournals(e)
	if e.Gone() && (e.status != nil || e.RunCount() > 0 || len(e.Claims) > 0) {
		e.Problems = m.hiddenProblem(ref)
	}
	if e.Object != nil {
		e.Inputs = m.inputs.of(ref)
		e.Missing = m.declared.of(e)
	}
	return e
}

// of returns the missing outputs of an object, by node; nil if all exist.
func (d *declaredOutputs) of(e *Entry) map[string]Missing {
	if d == nil || len(d.missing) == 0 {
		return nil
	}
	var all map[string]Missing
	for node, paths := range d.nodes[e.Ref] {
		var m Missing
		for _, p := range paths {
			if d.missing[p] {
				m.Files = append(m.Files, p)
			}
		}
		if len(m.Files) == 0 {
			continue
		}
		d.locate(&m, node, e.Runs())
		if all == nil {
			all = map[string]Missing{}
		}
		all[node] = m
	}
	return all
}

// sameEntry reports whether two entries of one object are equal.
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
	a, b = a.Declared(), b.Declared()
	return a.Digest == b.Digest && a.Path == b.Path && a.Metadata.Name == b.Metadata.Name &&
		maps.Equal(a.Metadata.Labels, b.Metadata.Labels) && maps.Equal(a.Metadata.Annotations, b.Metadata.Annotations)
}
