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
	return &dormantSet{base: b, activated: map[int]bool{}}
}

// find returns the index of an object among those of the base, or -1.
func (d *dormantSet) find(ref schemas.Ref) int {
	if d == nil {
		return -1
	}
	b := d.base
	if i, ok := b.frozen.search(ref); ok && !b.thawed[i] {
		return i
	}
	if i, ok := slices.BinarySearchFunc(b.recent, ref, func(o Dormant, ref schemas.Ref) int { return o.Ref.Compare(ref) }); ok {
		return len(b.thawed) + i
	}
	return -1
}

// has reports whether an object is dormant.
func (d *dormantSet) has(ref schemas.Ref) bool {
	i := d.find(ref)
	return i >= 0 && !d.activated[i]
}

// owns reports whether a file belongs to a dormant object, and returns its entry in the base.
func (d *dormantSet) owns(p string) (was baseFile, ok bool) {
	if d == nil {
		return was, false
	}
	f, ok := d.base.named(p)
	return f, ok && f.owner > 0 && !d.activated[int(f.owner)-1]
}

// files counts the files of dormant objects.
func (d *dormantSet) files() int {
	if d == nil {
		return 0
	}
	n := d.base.live.Files
	for _, c := range d.base.recentFiles {
		n += c
	}
	for i := range d.activated {
		n -= d.base.filesOf(i)
	}
	return n
}

// filesOf is the number of files of the dormant object with that index.
func (b *base) filesOf(i int) int {
	if n := len(b.thawed); i >= n {
		return b.recentFiles[i-n]
	}
	_, _, n := b.frozen.record(i)
	return n
}

// objects calls visit for the dormant objects of a kind, of all for "", sorted, until it returns false. The object is valid during
// the call; its strings stay valid.
func (b *base) objects(kind string, visit func(i int, o *Dormant) bool) {
	first, last := 0, len(b.recent)
	if kind != "" {
		first = sort.Search(last, func(i int) bool { return b.recent[i].Kind >= kind })
		last = sort.Search(last, func(i int) bool { return b.recent[i].Kind > kind })
	}
	recent, n := b.recent[first:last], len(b.thawed)+first
	from, to := b.frozen.ofKind(kind)
	var o Dormant
	for i := from; ; i++ {
		for i < to && b.thawed[i] {
			i++
		}
		if i < to {
			b.frozen.read(i, &o)
		}
		for ; len(recent) > 0 && (i >= to || recent[0].Compare(o.Ref) < 0); recent, n = recent[1:], n+1 {
			if !visit(n, &recent[0]) {
				return
			}
		}
		if i >= to || !visit(i, &o) {
			return
		}
	}
}

// each yields the dormant objects. An object is valid until the next one.
func (d *dormantSet) each() iter.Seq[*Dormant] { return d.all("") }

// all yields those of a kind, by name; of all kinds for "".
func (d *dormantSet) all(kind string) iter.Seq[*Dormant] {
	return func(yield func(*Dormant) bool) {
		if d != nil {
			d.base.objects(kind, func(i int, o *Dormant) bool { return len(d.activated) > 0 && d.activated[i] || yield(o) })
		}
	}
}

// kinds lists the kinds that dormant objects may have, in any order.
func (d *dormantSet) kinds() (kinds []string) {
	if d == nil {
		return nil
	}
	for i, n := 0, d.base.frozen.objects(); i < n; {
		kind := d.base.frozen.ref(i).Kind
		kinds = append(kinds, kind)
		_, i = d.base.frozen.ofKind(kind)
	}
	for i := range d.base.recent {
		if o := &d.base.recent[i]; !slices.Contains(kinds, o.Kind) {
			kinds = append(kinds, o.Kind)
		}
	}
	return kinds
}

// count counts the dormant objects of a kind.
func (d *dormantSet) count(kind string) int {
	if d == nil {
		return 0
	}
	b := d.base
	from, to := b.frozen.ofKind(kind)
	n := to - from
	for _, i := range b.thawedList {
		if from <= i && i < to {
			n--
		}
	}
	for i := range b.recent {
		if b.recent[i].Kind == kind && !d.activated[len(b.thawed)+i] {
			n++
		}
	}
	for i := range d.activated {
		if from <= i && i < to {
			n--
		}
	}
	return n
}

// same reports whether the same objects are dormant.
func (d *dormantSet) same(o *dormantSet) bool {
	return d == o || d != nil && o != nil && d.base == o.base && maps.Equal(d.activated, o.activated)
}

// without returns d without the objects with some indices.
func (d *dormantSet) without(indices []int) *dormantSet {
	next := *d
	next.activated = make(map[int]bool, len(d.activated)+len(indices))
	maps.Copy(next.activated, d.activated)
	for _, i := range indices {
		next.activated[i] = true
	}
	return &next
}

// lowerHash is the hash of a path in lower case.
func lowerHash(p string) uint64 { return xxhash.Sum64String(strings.ToLower(p)) }

// collides reports whether a dormant object's file has a path that differs from p at most in case.
func (d *dormantSet) collides(p string) bool {
	low := lowerHash(p)
	for i := range d.base.thawed {
		if path, _, _ := d.base.frozen.record(i); path == low && !d.base.thawed[i] && !d.activated[i] {
			return true
		}
	}
	for i := range d.base.recent {
		if d.base.recent[i].path == low && !d.activated[len(d.base.thawed)+i] {
			return true
		}
	}
	return false
}

// mayRefer reports whether a dormant object may refer to ref.
func (d *dormantSet) mayRefer(ref schemas.Ref) bool {
	return d != nil && (d.base.frozen.refers[ref] ||
		slices.ContainsFunc(d.base.recent, func(o Dormant) bool { return slices.Contains(o.Refs, ref) }))
}

// affects reports whether a spec file that was added, changed or removed concerns a dormant object.
func (d *dormantSet) affects(f *file) bool {
	b, ok := f.body.(*specBody)
	if !ok {
		return false
	}
	return d.has(b.ref) || d.mayRefer(b.ref) || d.collides(f.path) ||
		slices.ContainsFunc(b.references(), func(r schemas.Reference) bool { return d.has(r.To) })
}

// describeDormant describes an object that becomes dormant; ok is false if one of its files must stay loaded.
func (m *model) describeDormant(ref schemas.Ref) (o Dormant, ok bool) {
	s := m.slots[ref]
	if s == nil || len(s.specs) != 1 || s.status == nil || len(m.inputs.nodes[ref]) > 0 || len(m.declared.nodes[ref]) > 0 {
		return o, false
	}
	spec, b := s.specs[0], s.specs[0].body.(*specBody)
	status, isHeld := s.status.body.(*lazyStatus)
	if !isHeld || b.object == nil || b.object.Mentions(schemas.MarkTools) || len(b.problems) > 0 || len(b.cross) > 0 || spec.link || m.related[spec.path] ||
		m.missing[spec.path] {
		return o, false
	}
	for _, f := range s.runs {
		if r, ok := f.body.(*lazyRun); !ok || r.has != 0 {
			return o, false
		}
	}
	if m.hasInJournals(ref) {
		return o, false
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

// Dormant iterates over all dormant objects of a kind, those that are not loaded, by name. An object is valid until the next one.
func (t *Tree) Dormant(kind string) iter.Seq[*Dormant] { return t.dormant.all(kind) }

// CountDormant counts the dormant objects of a kind.
func (t *Tree) CountDormant(kind string) int { return t.dormant.count(kind) }

// SameDormant reports whether the same objects are dormant in two trees.
func (t *Tree) SameDormant(o *Tree) bool { return t.dormant.same(o.dormant) }

// mayHaveDormant reports whether there may be dormant objects of a kind.
func (t *Tree) mayHaveDormant(kind string) bool {
	return t.dormant.count(kind) > 0
}

// dormantReferrers returns the dormant objects that refer to ref.
func (t *Tree) dormantReferrers(ref schemas.Ref) []schemas.Ref {
	if !t.dormant.mayRefer(ref) {
		return nil
	}
	var out []schemas.Ref
	for o := range t.dormant.each() {
		if slices.Contains(o.Refs, ref) {
			out = append(out, o.Ref)
		}
	}
	return out
}

// activate makes dormant objects among some entries active.
func (t *Tree) activate(entries []*Entry) {
	var indices []int
	for _, e := range entries {
		if i := t.dormant.find(e.Ref); i >= 0 && !t.dormant.activated[i] {
			indices = append(indices, i)
		}
	}
	if len(indices) > 0 {
		t.dormant = t.dormant.without(indices)
	}
}

// len is the number of files: first those of frozen objects, some of which may be thawed, then the others.
func (b *base) len() int { return b.frozen.len() + len(b.files) }

func (b *base) file(i int) baseFile {
	if n := b.frozen.len(); i >= n {
		return b.files[i-n]
	}
	return b.frozen.file(i)
}

// owner returns 1 + the index of the dormant object that owns the file; 0: none.
func (b *base) owner(i int) int {
	if n := b.frozen.len(); i >= n {
		return int(b.files[i-n].owner)
	}
	return b.frozen.owner(i)
}

// thawedFile reports whether the file is one of frozen objects, and its object is not dormant any more: another entry describes the
// file, or none.
func (b *base) thawedFile(i int) bool {
	return i < b.frozen.len() && len(b.thawedList) > 0 && b.thawed[b.frozen.owner(i)-1]
}

// find returns the index of a file by the hash of its path; -1 if it did not exist.
func (b *base) find(path uint64) int {
	if i := b.frozen.find(path); i >= 0 && !b.thawedFile(i) {
		return i
	}
	if i := lookUpHash(b.slots, path, func(i int) uint64 { return b.files[i].path }); i >= 0 {
		return b.frozen.len() + i
	}
	return -1
}

// named returns what the base has about the file at a path; ok is false if the file did not exist.
func (b *base) named(p string) (f baseFile, ok bool) {
	i := b.find(hashOf(p))
	if i < 0 {
		return f, false
	}
	return b.file(i), true
}
