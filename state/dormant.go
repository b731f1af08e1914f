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

// Most objects of a tree in use want nothing: DAGs that succeeded, with all of their records, or whose session is paused, questions that
// were answered, what the memory has. The rows of the kinds say which rest. Such an object is dormant if none of its files changed since
// the tree was settled. A run does not load it. It knows the name, the status in brief and
// the references; access to more of it reads this object.

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

// entry returns the entry of a dormant object; nil if it is not dormant.
func (d *dormantSet) entry(ref schemas.Ref) *Entry {
	i := d.find(ref)
	if i < 0 || d.activated[i] {
		return nil
	}
	return d.reader.object(i).entry
}

// each yields the dormant objects. An object is valid until the next one.
func (d *dormantSet) each() iter.Seq[*Dormant] { return d.all("") }

// all yields those of a kind, by name; of all kinds for "".
func (d *dormantSet) all(kind string) iter.Seq[*Dormant] {
	return func(yield func(*Dormant) bool) {
		for _, o := range d.indexed(kind) {
			if !yield(o) {
				return
			}
		}
	}
}

// indexed is all with the indices.
func (d *dormantSet) indexed(kind string) iter.Seq2[int, *Dormant] {
	return func(yield func(int, *Dormant) bool) {
		if d != nil {
			d.base.objects(kind, func(i int, o *Dormant) bool { return len(d.activated) > 0 && d.activated[i] || yield(i, o) })
		}
	}
}

// kinds lists the kinds that dormant objects may have, in any order.
func (d *dormantSet) kinds() (kinds []string) {
	if d == nil {
		return nil
	}
	kinds = slices.Collect(maps.Keys(d.base.frozen.kinds))
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

// at yields the indices of the dormant objects whose spec files have one of the paths, or one that differs only in case.
func (d *dormantSet) at(paths []string) iter.Seq[int] {
	return func(yield func(int) bool) {
		if d == nil {
			return
		}
		low := make(map[uint64]bool, len(paths))
		for _, p := range paths {
			low[lowerHash(p)] = true
		}
		for i := range d.base.thawed {
			if path, _, _ := d.base.frozen.record(i); low[path] && !d.base.thawed[i] && !d.activated[i] && !yield(i) {
				return
			}
		}
		for i := range d.base.recent {
			if n := len(d.base.thawed) + i; low[d.base.recent[i].path] && !d.activated[n] && !yield(n) {
				return
			}
		}
	}
}

// affected returns the indices of the dormant objects that a spec file which was added, changed or removed concerns: its own, those
// that it refers to, those that refer to it, and those whose path differs at most in case.
func (d *dormantSet) affected(f *file) (indices []int) {
	add := func(ref schemas.Ref) {
		if i := d.find(ref); i >= 0 && !d.activated[i] {
			indices = append(indices, i)
		}
	}
	b, ok := f.body.(*specBody)
	if !ok || d == nil {
		return nil
	}
	add(b.ref)
	for _, r := range b.references() {
		add(r.To)
	}
	for i := range d.referrers(b.ref) {
		indices = append(indices, i)
	}
	return slices.AppendSeq(indices, d.at([]string{f.path}))
}

// referrers yields the dormant objects that refer to ref: their indices, in no order.
func (d *dormantSet) referrers(ref schemas.Ref) iter.Seq[int] {
	return func(yield func(int) bool) {
		if d == nil {
			return
		}
		for i := range d.base.frozen.referrersOf(ref) {
			if !d.base.thawed[i] && !d.activated[i] && !yield(i) {
				return
			}
		}
		for i := range d.base.recent {
			if n := len(d.base.thawed) + i; slices.Contains(d.base.recent[i].Refs, ref) && !d.activated[n] && !yield(n) {
				return
			}
		}
	}
}

// ref is the object with that index.
func (b *base) ref(i int) schemas.Ref {
	if n := len(b.thawed); i >= n {
		return b.recent[i-n].Ref
	}
	return b.frozen.ref(i)
}

// object reads the object with that index into o.
func (b *base) object(i int, o *Dormant) {
	if n := len(b.thawed); i >= n {
		*o = b.recent[i-n]
		return
	}
	*o = Dormant{}
	b.frozen.read(i, o)
}

// Active returns the active entries of a kind, sorted by name: those that may need work, and those that changed since the
// tree was settled. The others are dormant and not loaded.
func (t *Tree) Active(kind string) []*Entry { return t.shelves[kind] }

// Dormant iterates over all dormant objects of a kind, those that are not loaded, by name. An object is valid until the next one.
func (t *Tree) Dormant(kind string) iter.Seq[*Dormant] { return t.dormant.all(kind) }

// DormantReferrers iterates over the dormant objects of a kind that refer to ref, in no order. An object is valid until the next one.
func (t *Tree) DormantReferrers(ref schemas.Ref, kind string) iter.Seq[*Dormant] {
	return func(yield func(*Dormant) bool) {
		var o Dormant
		for i := range t.dormant.referrers(ref) {
			if t.dormant.base.object(i, &o); o.Kind == kind && !yield(&o) {
				return
			}
		}
	}
}

// CountDormant counts the dormant objects of a kind, and those of them that are not ready.
func (t *Tree) CountDormant(kind string) (all, unready int) {
	if all = t.dormant.count(kind); all == 0 {
		return 0, 0
	}
	unready = t.dormant.reader.countUnready(kind)
	var o Dormant
	for i := range t.dormant.activated {
		if t.dormant.base.object(i, &o); o.Kind == kind && o.Unready() {
			unready--
		}
	}
	return all, unready
}

// SameBase reports whether two trees were loaded by one load that left objects dormant, or both have none: then Since compares them
// without loading any.
func (t *Tree) SameBase(o *Tree) bool {
	return t.dormant == o.dormant || t.dormant != nil && o.dormant != nil && t.dormant.base == o.dormant.base
}

// LeavesDormant reports whether objects of the tree may be dormant.
func (t *Tree) LeavesDormant() bool { return t.dormant != nil }

// IsDormant reports whether an object is dormant.
func (t *Tree) IsDormant(ref schemas.Ref) bool { return t.dormant.has(ref) }

// mayHaveDormant reports whether there may be dormant objects of a kind.
func (t *Tree) mayHaveDormant(kind string) bool {
	return t.dormant.count(kind) > 0
}

// dormantReferrers returns the dormant objects that refer to ref.
func (t *Tree) dormantReferrers(ref schemas.Ref) []schemas.Ref {
	var out []schemas.Ref
	for i := range t.dormant.referrers(ref) {
		out = append(out, t.dormant.base.ref(i))
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
		t.dormant.reader.ask(indices)
	}
}

// object returns the dormant object with that index.
func (r *dormantReader) object(i int) *dormantObject {
	r.mu.Lock()
	defer r.mu.Unlock()
	o := r.objects[i]
	if o == nil {
		o = r.from(i)
		r.objects[i] = o
	}
	return o
}

// countUnready counts the objects of the base of a kind that are not ready.
func (r *dormantReader) countUnready(kind string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n, ok := r.unready[kind]
	if !ok {
		n = r.base.frozen.countUnready(kind, r.base.thawed)
		for i := range r.base.recent {
			if o := &r.base.recent[i]; o.Kind == kind && o.Unready() {
				n++
			}
		}
		r.unready[kind] = n
	}
	return n
}

// ask takes note of dormant objects of which a tree has other entries.
func (r *dormantReader) ask(indices []int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.woken = append(r.woken, indices...)
}

// among returns those of some objects that are dormant.
func (d *dormantSet) among(indices []int) (some []int) {
	for _, i := range indices {
		if !d.activated[i] {
			some = append(some, i)
		}
	}
	return some
}

// wake adds the files of dormant objects to the model, and reports whether it could: else everything must be loaded.
func (m *model) wake(indices ...int) bool {
	indices = m.dormant.among(indices)
	if len(indices) == 0 {
		return true
	}
	var files []*file
	for _, i := range indices {
		o := m.dormant.reader.object(i) // its entry is as it is before the model finds problems with respect to other files
		if o.files == nil {
			return false
		}
		files = append(files, o.files...)
	}
	for _, f := range files {
		m.put(f)
	}
	m.dormant = m.dormant.without(indices)
	return true
}

// dormantInJournals returns the indices of the dormant objects about which a journal says something.
func (m *model) dormantInJournals() (indices []int) {
	for _, v := range m.journals {
		for ref := range v.owners {
			if i := m.dormant.find(ref); i >= 0 {
				indices = append(indices, i)
			}
		}
	}
	return indices
}

// wakeAsked wakes the objects of which a tree has other entries.
func (s *Store) wakeAsked() {
	if s.model == nil || s.model.dormant == nil {
		return
	}
	r := s.model.dormant.reader
	r.mu.Lock()
	asked := r.woken
	r.woken = nil
	r.mu.Unlock()
	if !s.model.wake(asked...) {
		s.needsFullLoad.Store(true)
	}
}

// wakeOwner wakes the object that owns the file at a path, if that is dormant, and reports whether it could.
func (s *Store) wakeOwner(p string) bool {
	s.wakeAsked()
	was, asleep := s.model.dormant.owns(p)
	return !asleep || s.model.wake(int(was.owner)-1)
}
