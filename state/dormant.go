package state

import (
	"iter"
	"maps"
	"slices"
	"sort"
	"strings"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/schemas"
)

// Most objects of a tree in use are finished: DAGs that succeeded, with all of their records. Such an object is dormant
// if none of its files changed since the tree was settled. A run does not load it. It knows the name, the final phase and
// the references; access to more of it loads all dormant objects.

func (f *fullTree) get() *Tree {
	f.once.Do(func() { f.tree = f.load() })
	return f.tree
}

func newDormants(b *base) *dormantSet {
	d := &dormantSet{base: b, kinds: map[string][]Dormant{}, count: make([]int, len(b.dormant)), refers: map[schemas.Ref]bool{}, activated: map[schemas.Ref]bool{}}
	for i := range b.files {
		if o := b.files[i].owner; o > 0 {
			d.count[o-1]++
		}
	}
	for i := range b.dormant {
		for _, ref := range b.dormant[i].Refs {
			d.refers[ref] = true
		}
	}
	for list := b.dormant; len(list) > 0; {
		kind := list[0].Kind
		n := sort.Search(len(list), func(i int) bool { return list[i].Kind != kind })
		d.kinds[kind], list = list[:n], list[n:]
	}
	return d
}

// find returns the index of an object among those of the base, or -1.
func (d *dormantSet) find(ref schemas.Ref) int {
	if d == nil {
		return -1
	}
	i, ok := slices.BinarySearchFunc(d.base.dormant, ref, func(o Dormant, ref schemas.Ref) int { return o.Ref.Compare(ref) })
	if !ok {
		return -1
	}
	return i
}

// has reports whether an object is dormant.
func (d *dormantSet) has(ref schemas.Ref) bool { return d.find(ref) >= 0 && !d.activated[ref] }

// owns reports whether a file belongs to a dormant object, and returns its entry in the base.
func (d *dormantSet) owns(p string) (was *baseFile, ok bool) {
	if d == nil {
		return nil, false
	}
	f := d.base.file(p)
	return f, f != nil && f.owner > 0 && !d.activated[d.base.dormant[f.owner-1].Ref]
}

// files counts the files of dormant objects.
func (d *dormantSet) files() int {
	if d == nil {
		return 0
	}
	n := 0
	for i, c := range d.count {
		if len(d.activated) == 0 || !d.activated[d.base.dormant[i].Ref] {
			n += c
		}
	}
	return n
}

// each yields the dormant objects.
func (d *dormantSet) each() iter.Seq[*Dormant] {
	return func(yield func(*Dormant) bool) {
		if d == nil {
			return
		}
		for i := range d.base.dormant {
			if o := &d.base.dormant[i]; (len(d.activated) == 0 || !d.activated[o.Ref]) && !yield(o) {
				return
			}
		}
	}
}

// all yields those of a kind, by name.
func (d *dormantSet) all(kind string) iter.Seq[*Dormant] {
	return func(yield func(*Dormant) bool) {
		if d == nil {
			return
		}
		list := d.kinds[kind]
		for i := range list {
			if o := &list[i]; (len(d.activated) == 0 || !d.activated[o.Ref]) && !yield(o) {
				return
			}
		}
	}
}

// same reports whether the same objects are dormant.
func (d *dormantSet) same(o *dormantSet) bool {
	return d == o || d != nil && o != nil && d.base == o.base && maps.Equal(d.activated, o.activated)
}

// without returns d without the objects of some refs.
func (d *dormantSet) without(refs []schemas.Ref) *dormantSet {
	next := *d
	next.activated = make(map[schemas.Ref]bool, len(d.activated)+len(refs))
	for ref := range d.activated {
		next.activated[ref] = true
	}
	for _, ref := range refs {
		next.activated[ref] = true
	}
	return &next
}

// lowerHash is the hash of a path in lower case.
func lowerHash(p string) uint64 { return xxhash.Sum64String(strings.ToLower(p)) }

// collides reports whether a dormant object's file has a path that differs from p at most in case.
func (d *dormantSet) collides(p string) bool {
	low := lowerHash(p)
	return slices.ContainsFunc(d.base.dormant, func(o Dormant) bool { return o.path == low && !d.activated[o.Ref] })
}

// affects reports whether a spec file that was added, changed or removed concerns a dormant object.
func (d *dormantSet) affects(f *file) bool {
	b, ok := f.body.(*specBody)
	if !ok {
		return false
	}
	return d.has(b.ref) || d.refers[b.ref] || d.collides(f.path) ||
		slices.ContainsFunc(b.references(), func(r schemas.Reference) bool { return d.has(r.To) })
}

// nextDormants are the dormant objects of the next base.
type nextDormants struct {
	list   []*Dormant             // sorted
	owners map[schemas.Ref]uint64 // the numbers of those that become dormant: 1 + the index
	was    *base                  // nil: none was dormant before
	now    []uint64               // the numbers of those that stay dormant, by the former number
}

// nextDormants lists the objects that stay dormant, and those of asleep that become so.
func (m *model) nextDormants(asleep []schemas.Ref) *nextDormants {
	var fresh []*Dormant
	for _, ref := range asleep {
		if o, ok := m.describeDormant(ref); ok {
			fresh = append(fresh, &o)
		}
	}
	slices.SortFunc(fresh, func(x, y *Dormant) int { return x.Compare(y.Ref) })
	d := &nextDormants{owners: make(map[schemas.Ref]uint64, len(fresh))}
	add := func(o *Dormant) uint64 {
		d.list = append(d.list, o)
		return uint64(len(d.list))
	}
	addFresh := func(before *Dormant) {
		for len(fresh) > 0 && (before == nil || fresh[0].Compare(before.Ref) < 0) {
			d.owners[fresh[0].Ref] = add(fresh[0])
			fresh = fresh[1:]
		}
	}
	if was := m.dormant; was != nil {
		d.was, d.now = was.base, make([]uint64, len(was.base.dormant)+1)
		d.list = make([]*Dormant, 0, len(was.base.dormant)+len(fresh))
		for i := range was.base.dormant {
			if o := &was.base.dormant[i]; len(was.activated) == 0 || !was.activated[o.Ref] {
				addFresh(o)
				d.now[i+1] = add(o)
			}
		}
	}
	addFresh(nil)
	return d
}

// files yields the files of the objects that stay dormant, with their new owners.
func (d *nextDormants) files(yield func(baseFile)) {
	if d.was == nil {
		return
	}
	for _, f := range d.was.files {
		if f.owner = d.now[f.owner]; f.owner > 0 {
			yield(f)
		}
	}
}

// room is about the size of the encoded list.
func (d *nextDormants) room() int {
	n := 0
	for _, o := range d.list {
		if n += len(o.coded); o.coded == nil {
			n += 128
		}
	}
	return n
}

// describeDormant describes an object that becomes dormant; ok is false if one of its files must stay loaded.
func (m *model) describeDormant(ref schemas.Ref) (o Dormant, ok bool) {
	s := m.slots[ref]
	if s == nil || len(s.specs) != 1 || s.status == nil || len(m.inputs.nodes[ref]) > 0 || len(m.declared.nodes[ref]) > 0 {
		return o, false
	}
	spec, b := s.specs[0], s.specs[0].body.(*specBody)
	status, isHeld := s.status.body.(*lazyStatus)
	if !isHeld || b.object == nil || len(b.problems) > 0 || len(b.cross) > 0 || spec.link || m.related[spec.path] ||
		m.missing[spec.path] {
		return o, false
	}
	for _, f := range s.runs {
		if r, ok := f.body.(*lazyRun); !ok || r.has != 0 {
			return o, false
		}
	}
	for _, v := range m.journals {
		if v.owners[ref] != nil {
			return o, false
		}
	}
	o = Dormant{Ref: ref, Brief: *status.inBrief(), path: lowerHash(spec.path)}
	for _, r := range b.object.Refs {
		o.Refs = append(o.Refs, r.To)
	}
	return o, true
}

// Active returns the active entries of a kind, sorted by name: those that may need work, and those that changed since the
// tree was settled. The others are dormant and not loaded.
func (t *Tree) Active(kind string) []*Entry { return t.shelves[kind] }

// Dormant iterates over all dormant objects of a kind, those that are not loaded, by name.
func (t *Tree) Dormant(kind string) iter.Seq[*Dormant] { return t.dormant.all(kind) }

// SameDormant reports whether the same objects are dormant in two trees.
func (t *Tree) SameDormant(o *Tree) bool { return t.dormant.same(o.dormant) }

// mayHaveDormant reports whether there may be dormant objects of a kind.
func (t *Tree) mayHaveDormant(kind string) bool {
	for range t.dormant.all(kind) {
		return true
	}
	return false
}

// dormantReferrers returns the dormant objects that refer to ref.
func (t *Tree) dormantReferrers(ref schemas.Ref) []schemas.Ref {
	if t.dormant == nil || !t.dormant.refers[ref] {
		return nil
	}
	var out []schemas.Ref
	for i := range t.dormant.base.dormant {
		if o := &t.dormant.base.dormant[i]; slices.Contains(o.Refs, ref) && !t.dormant.activated[o.Ref] {
			out = append(out, o.Ref)
		}
	}
	return out
}

// activate makes dormant objects among some entries active.
func (t *Tree) activate(entries []*Entry) {
	var refs []schemas.Ref
	for _, e := range entries {
		if t.dormant.has(e.Ref) {
			refs = append(refs, e.Ref)
		}
	}
	if len(refs) > 0 {
		t.dormant = t.dormant.without(refs)
	}
}

// hashOf is the hash of a path.
func hashOf(p string) uint64 { return xxhash.Sum64String(p) }

// lookUpHash returns the index of a hash, or -1.
func lookUpHash(slots []uint32, hash uint64, at func(i int) uint64) int {
	mask := uint64(len(slots) - 1)
	for s := hash & mask; slots[s] != 0; s = (s + 1) & mask {
		if i := int(slots[s] - 1); at(i) == hash {
			return i
		}
	}
	return -1
}
