package state

import (
	"iter"
	"maps"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/schemas"
)

// Most of a tree that has been in use for a while is over: DAGs that succeeded, with all of their records. Such objects are
// dormant when nothing of them has changed since the tree was settled. A run does not load them. It knows their names, how
// they ended and what they refer to; whoever asks the tree for more has all of them loaded.

// Dormant is an object that was not loaded.
type Dormant struct {
	schemas.Ref
	Brief schemas.Brief
	Refs  []schemas.Ref // what it refers to
	path  uint64        // the hash of its path in lower case
	coded []byte        // as the base has it; nil: not coded yet
}

// dormants are those of a tree.
type dormants struct {
	base   *base
	kinds  map[string][]Dormant // of the base
	count  []int                // files by owner
	refers map[schemas.Ref]bool
	awake  map[schemas.Ref]bool // those that are loaded after all; another map for each tree
	full   *fullTree
}

// fullTree is the tree with everything loaded, once somebody asks for it.
type fullTree struct {
	once sync.Once
	load func() *Tree
	tree *Tree
}

func (f *fullTree) get() *Tree {
	f.once.Do(func() { f.tree = f.load() })
	return f.tree
}

func newDormants(b *base) *dormants {
	d := &dormants{base: b, kinds: map[string][]Dormant{}, count: make([]int, len(b.dormant)), refers: map[schemas.Ref]bool{}, awake: map[schemas.Ref]bool{}}
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
func (d *dormants) find(ref schemas.Ref) int {
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
func (d *dormants) has(ref schemas.Ref) bool { return d.find(ref) >= 0 && !d.awake[ref] }

// owns reports whether a file is that of a dormant object, and returns what it was.
func (d *dormants) owns(p string) (was *baseFile, ok bool) {
	if d == nil {
		return nil, false
	}
	f := d.base.file(p)
	return f, f != nil && f.owner > 0 && !d.awake[d.base.dormant[f.owner-1].Ref]
}

// files counts the files of dormant objects.
func (d *dormants) files() int {
	if d == nil {
		return 0
	}
	n := 0
	for i, c := range d.count {
		if len(d.awake) == 0 || !d.awake[d.base.dormant[i].Ref] {
			n += c
		}
	}
	return n
}

// each yields the dormant objects.
func (d *dormants) each() iter.Seq[*Dormant] {
	return func(yield func(*Dormant) bool) {
		if d == nil {
			return
		}
		for i := range d.base.dormant {
			if o := &d.base.dormant[i]; (len(d.awake) == 0 || !d.awake[o.Ref]) && !yield(o) {
				return
			}
		}
	}
}

// all yields those of a kind, by name.
func (d *dormants) all(kind string) iter.Seq[*Dormant] {
	return func(yield func(*Dormant) bool) {
		if d == nil {
			return
		}
		list := d.kinds[kind]
		for i := range list {
			if o := &list[i]; (len(d.awake) == 0 || !d.awake[o.Ref]) && !yield(o) {
				return
			}
		}
	}
}

// same reports whether the same objects are dormant.
func (d *dormants) same(o *dormants) bool {
	return d == o || d != nil && o != nil && d.base == o.base && maps.Equal(d.awake, o.awake)
}

// wake returns d without the objects of some refs.
func (d *dormants) wake(refs []schemas.Ref) *dormants {
	next := *d
	next.awake = make(map[schemas.Ref]bool, len(d.awake)+len(refs))
	for ref := range d.awake {
		next.awake[ref] = true
	}
	for _, ref := range refs {
		next.awake[ref] = true
	}
	return &next
}

// lowerHash is the hash of a path in lower case.
func lowerHash(p string) uint64 { return xxhash.Sum64String(strings.ToLower(p)) }

// collides reports whether a dormant object's file has a path that differs from p at most in case.
func (d *dormants) collides(p string) bool {
	low := lowerHash(p)
	return slices.ContainsFunc(d.base.dormant, func(o Dormant) bool { return o.path == low && !d.awake[o.Ref] })
}

// bearsOn reports whether a spec file that came, changed or went has to do with a dormant object.
func (d *dormants) bearsOn(f *file) bool {
	b, ok := f.body.(*specBody)
	if !ok {
		return false
	}
	return d.has(b.ref) || d.refers[b.ref] || d.collides(f.path) ||
		slices.ContainsFunc(b.references(), func(r schemas.Reference) bool { return d.has(r.To) })
}

// putDormant adds the objects that are dormant to the base of a model, with the files of those that are not loaded, and
// returns their owners' numbers.
func (b *base) putDormant(m *model, asleep []schemas.Ref) map[schemas.Ref]uint64 {
	var fresh []Dormant
	for _, ref := range asleep {
		if o, ok := m.sleeper(ref); ok {
			fresh = append(fresh, o)
		}
	}
	slices.SortFunc(fresh, func(x, y Dormant) int { return x.Compare(y.Ref) })
	owners := make(map[schemas.Ref]uint64, len(fresh))
	add := func(o *Dormant) uint64 {
		b.dormant = append(b.dormant, *o)
		return uint64(len(b.dormant))
	}
	addFresh := func(before *Dormant) {
		for len(fresh) > 0 && (before == nil || fresh[0].Compare(before.Ref) < 0) {
			owners[fresh[0].Ref] = add(&fresh[0])
			fresh = fresh[1:]
		}
	}
	if was := m.dormant; was != nil {
		b.dormant = make([]Dormant, 0, len(was.base.dormant)+len(fresh))
		now := make([]uint64, len(was.base.dormant)+1) // by the owner before
		for i := range was.base.dormant {
			if o := &was.base.dormant[i]; len(was.awake) == 0 || !was.awake[o.Ref] {
				addFresh(o)
				now[i+1] = add(o)
			}
		}
		for _, f := range was.base.files {
			if f.owner = now[f.owner]; f.owner > 0 {
				b.files = append(b.files, f)
			}
		}
	}
	addFresh(nil)
	return owners
}

// sleeper describes an object that is to be dormant; ok is false if something of its files has to be known.
func (m *model) sleeper(ref schemas.Ref) (o Dormant, ok bool) {
	s := m.slots[ref]
	if s == nil || len(s.specs) != 1 || s.status == nil || len(m.inputs.nodes[ref]) > 0 || len(m.declared.nodes[ref]) > 0 {
		return o, false
	}
	spec, b := s.specs[0], s.specs[0].body.(*specBody)
	status, isHeld := s.status.body.(*heldStatus)
	if !isHeld || b.object == nil || len(b.problems) > 0 || len(b.cross) > 0 || spec.link || m.related[spec.path] ||
		m.missing[spec.path] {
		return o, false
	}
	for _, f := range s.runs {
		if r, ok := f.body.(*heldRun); !ok || r.has != 0 {
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

func (e *encoder) dormant(list []Dormant) {
	e.uint(uint64(len(list)))
	for i := range list {
		o := &list[i]
		if o.coded != nil {
			e.b = append(e.b, o.coded...)
			continue
		}
		e.str(o.Kind)
		e.str(o.Name)
		e.brief(&o.Brief)
		e.uint(o.path)
		e.uint(uint64(len(o.Refs)))
		for _, r := range o.Refs {
			e.str(r.Kind)
			e.str(r.Name)
		}
	}
}

func (d *decoder) dormant() []Dormant {
	n := d.count()
	list := make([]Dormant, n)
	for i := range list {
		o, from := &list[i], d.b
		o.Ref = schemas.Ref{Kind: d.kindName(), Name: d.shared()}
		o.Brief, o.path = d.brief(), d.uint()
		for range d.count() {
			o.Refs = append(o.Refs, schemas.Ref{Kind: d.kindName(), Name: d.shared()})
		}
		o.coded = from[:len(from)-len(d.b)]
	}
	return list
}

// Active returns the objects of a kind that are loaded, sorted by name: those of which something may be to do, and those that
// changed since the tree was settled.
func (t *Tree) Active(kind string) []*Entry { return t.shelves[kind] }

// Dormant yields the objects of a kind that are not loaded, by name.
func (t *Tree) Dormant(kind string) iter.Seq[*Dormant] { return t.dormant.all(kind) }

// SameDormant reports whether the same objects are dormant in two trees.
func (t *Tree) SameDormant(o *Tree) bool { return t.dormant.same(o.dormant) }

// sleeps reports whether there may be dormant objects of a kind.
func (t *Tree) sleeps(kind string) bool {
	for range t.dormant.all(kind) {
		return true
	}
	return false
}

// entries are those of a kind, dormant ones among them, which are loaded for that.
func (t *Tree) entries(kind string) []*Entry {
	out := slices.Clone(t.shelves[kind])
	for o := range t.dormant.all(kind) {
		if e := t.dormant.full.get().Entry(o.Ref); e != nil {
			out = append(out, e)
		}
	}
	slices.SortFunc(out, func(a, b *Entry) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// dormantReferrers are the dormant objects that refer to ref.
func (t *Tree) dormantReferrers(ref schemas.Ref) []schemas.Ref {
	if t.dormant == nil || !t.dormant.refers[ref] {
		return nil
	}
	var out []schemas.Ref
	for i := range t.dormant.base.dormant {
		if o := &t.dormant.base.dormant[i]; slices.Contains(o.Refs, ref) && !t.dormant.awake[o.Ref] {
			out = append(out, o.Ref)
		}
	}
	return out
}

// rouse makes those of some entries active that were dormant.
func (t *Tree) rouse(entries []*Entry) {
	var refs []schemas.Ref
	for _, e := range entries {
		if t.dormant.has(e.Ref) {
			refs = append(refs, e.Ref)
		}
	}
	if len(refs) > 0 {
		t.dormant = t.dormant.wake(refs)
	}
}
