package settle

import (
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"slices"
)

// Worklist is the set of objects that a Settle decides in its next round. Rows of the table add to it.
type Worklist struct{ s *settler }

// Tree is the tree of this round.
func (w Worklist) Tree() *state.Tree { return w.s.tree }

// OfTree are values that follow from this tree alone.
func (w Worklist) OfTree() *Values { return w.s.values }

// HasKind reports whether an object of a kind is on a list that does not hold everything.
func (w Worklist) HasKind(kind string) bool {
	for ref := range w.s.work {
		if ref.Kind == kind {
			return true
		}
	}
	return false
}

// Everything reports whether everything is decided; then there is nothing to add.
func (w Worklist) Everything() bool { return w.s.work == nil }

// has reports whether an object is decided.
func (w Worklist) has(ref schemas.Ref) bool { return w.s.work == nil || w.s.work[ref] }

// AddAll adds everything.
func (w Worklist) AddAll() { w.s.work = nil }

// Add adds one object, if it exists.
func (w Worklist) Add(ref schemas.Ref) {
	if w.s.work != nil && w.s.tree.Entry(ref) != nil {
		w.s.work[ref] = true
	}
}

// AddWithReaders adds one object, its dependents and the objects that it affects. It does nothing for an object that is
// on the list.
func (w Worklist) AddWithReaders(ref schemas.Ref) {
	if !w.has(ref) && w.s.tree.Entry(ref) != nil {
		w.s.work[ref] = true
		w.addReaders(ref, false)
	}
}

// AddChanged adds an object that changed, and what depends on it or is affected by it.
func (w Worklist) AddChanged(ref schemas.Ref) {
	w.Add(ref)
	w.addReaders(ref, true)
}

// AddDependents adds the objects that refer to one and depend on it, each with its own readers.
func (w Worklist) AddDependents(ref schemas.Ref) {
	for i := range w.s.table {
		if k := &w.s.table[i]; slices.Contains(k.DependsOn, ref.Kind) {
			for _, from := range w.s.tree.ReferrersOf(ref, k.Name) {
				w.AddWithReaders(from)
			}
		}
	}
}

func (w Worklist) addReaders(ref schemas.Ref, itself bool) {
	if w.s.work == nil {
		return
	}
	w.AddDependents(ref)
	if k := w.s.table.responsible(ref.Kind); k != nil && k.Affects != nil && w.s.work != nil {
		k.Affects(&Change{Worklist: w, Ref: ref, Entry: w.s.tree.Entry(ref), Itself: itself})
	}
}

// Note remembers a word until the end of the round, and reports whether it is new: so work for all of a kind is done once.
func (w Worklist) Note(word string) bool {
	if w.s.noted[word] {
		return false
	}
	w.s.noted[word] = true
	return true
}

// Noted reports whether a word was given to Note in this round.
func (w Worklist) Noted(word string) bool { return w.s.noted[word] }

// Change is an object that is decided, for [Kind.Affects].
type Change struct {
	Worklist
	Ref   schemas.Ref
	Entry *state.Entry // nil: nothing is left of the object, or Ref is one of Kind.Sources
	// Itself is set if the object itself changed, and not only something that it depends on.
	Itself bool
}

// Round is one pass of a Settle over its worklist.
type Round struct {
	Worklist
	World *World
	// Was is the tree before the round, and Changed are the entries whose status the round changed. Both are for [Kind.After].
	Was     *state.Tree
	Changed []*state.Entry
}

// EachChanged yields the changed entries of a kind, as they were and as they are.
func (r *Round) EachChanged(kind string, yield func(was, is *state.Entry)) {
	for _, e := range r.Changed {
		if e.Kind == kind {
			yield(r.Was.Entry(e.Ref), e)
		}
	}
}
