package state

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"sort"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// Tree is the input of decisions: specs, statuses, records, ledgers, settings and problems, at one moment. It is
// immutable; With makes the next one. Methods that return slices return shared ones: callers must not change them.
type Tree struct {
	kinds     schemas.Kinds
	shelves   map[string][]*Entry // by kind, sorted by name
	referrers map[schemas.Ref][]schemas.Ref
	settings  *schemas.SettingsSpec
	problems  []schemas.Problem // sorted by path, line, column
	deferred  *deferredRecords  // nil: none
	ledgers   []*Ledger         // sorted by issue
	dormant   *dormantSet       // objects that were not loaded; nil: all were loaded
}

// Entry holds a tree's data about one object. An object whose spec was deleted has an entry until its status, records and
// claims are removed.
type Entry struct {
	schemas.Ref
	// Object is the spec; nil if it is missing or invalid.
	Object *schemas.Object
	// Problems are the errors of the object's own file or files. An object with errors is broken: its spec exists, Object
	// is nil, and the last status stays.
	Problems []schemas.Problem
	// Refs are the references in the valid part of a broken object; nil if Object, which has its own, is not nil.
	Refs   []schemas.Reference
	status *lazyStatus // nil without a status file
	// StatusPath is the path of the status file below the root, whether it exists or not.
	StatusPath string
	runs       *lazyRuns // nil without records
	// Claims are the effects of this object that a live process has claimed or is running, sorted by Key.
	Claims []Claim
	// Inputs holds, for each node of a DAG that declares inputs, the digest of the files that its globs match now.
	Inputs map[string]string
	// Missing holds, for each node of a DAG that declares outputs, those that do not exist now; nil when all exist.
	Missing map[string]Missing
	// Accepted is, for an Observation, the digest of the spec that the memory has ingested; "" if that is not known. The
	// code that updates the memory sets it if it may affect the status.
	Accepted string
}

// Broken reports whether the spec exists and is invalid.
func (e *Entry) Broken() bool { return len(e.Problems) > 0 }

// Gone reports whether the spec does not exist.
func (e *Entry) Gone() bool { return e.Object == nil && !e.Broken() }

// Claim is a recorded intent of an effect without a result, claimed by a live process.
type Claim struct {
	schemas.Run        // Outcome is empty; StartedAt is zero until it was started
	Process     string // the name of the journal of the process that claimed it
	PID         int    // process group of the effect, once started
	Start       int64  // the start time of that process, as proc.ID.Start; 0: not known
}

// Entry returns the entry of ref, or nil.
func (t *Tree) Entry(ref schemas.Ref) *Entry {
	if e := t.loaded(ref); e != nil || !t.dormant.has(ref) {
		return e
	}
	return t.dormant.full.get().Entry(ref)
}

// loaded is Entry without loading.
func (t *Tree) loaded(ref schemas.Ref) *Entry {
	shelf := t.shelves[ref.Kind]
	if i, ok := find(shelf, ref.Name); ok {
		return shelf[i]
	}
	return nil
}

// Entries returns all objects of a kind, sorted by name. It loads dormant ones: callers that do not need them use Active.
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
		case was != nil && was.dormant.same(t.dormant):
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
			if !yield(a, b) {
				return
			}
		}
	}
}

// Schemas returns the table of kinds that the tree was read with; nil for a tree made by NewTree.
func (t *Tree) Schemas() schemas.Kinds { return t.kinds }

// Kinds returns the kinds that have entries, sorted.
func (t *Tree) Kinds() []string {
	kinds := slices.Collect(maps.Keys(t.shelves))
	if t.dormant != nil {
		kinds = slices.AppendSeq(kinds, maps.Keys(t.dormant.kinds))
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// Len counts the entries of all kinds.
func (t *Tree) Len() int {
	n := 0
	for _, s := range t.shelves {
		n += len(s)
	}
	for range t.dormant.each() {
		n++
	}
	return n
}

// Referrers returns the objects whose specs refer to ref, sorted. ref itself need not exist.
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

// Settings returns the tree's settings with defaults; never nil.
func (t *Tree) Settings() *schemas.SettingsSpec { return t.settings }

// Problems returns every problem of every file, sorted by place.
func (t *Tree) Problems() []schemas.Problem {
	if t.deferred == nil {
		return t.problems
	}
	t.deferred.read()
	return sortProblems(slices.Concat(t.problems, t.deferred.problems))
}

// NewTree makes a tree of entries, which it then owns. Later entries of a Ref replace earlier ones.
func NewTree(settings *schemas.SettingsSpec, problems []schemas.Problem, entries ...*Entry) *Tree {
	if settings == nil {
		settings = new(schemas.SettingsSpec)
		settings.Default()
	}
	t := &Tree{shelves: map[string][]*Entry{}, referrers: map[schemas.Ref][]schemas.Ref{}, settings: settings}
	for _, e := range entries {
		t.shelves[e.Kind] = append(t.shelves[e.Kind], e)
	}
	for kind, shelf := range t.shelves {
		slices.SortStableFunc(shelf, func(a, b *Entry) int { return strings.Compare(a.Name, b.Name) })
		t.shelves[kind] = lastOfEach(shelf)
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

func references(e *Entry) []schemas.Ref {
	if e == nil || e.Object == nil {
		return nil
	}
	out := make([]schemas.Ref, len(e.Object.Refs))
	for i, r := range e.Object.Refs {
		out[i] = r.To
	}
	return out
}

// With returns a tree in which the given entries replace those of the same Ref. An entry that is Gone and has neither
// status, runs nor claims is removed. The receiver is unchanged; unchanged parts are shared.
func (t *Tree) With(entries ...*Entry) *Tree {
	next := new(Tree)
	*next = *t
	next.shelves = maps.Clone(t.shelves)
	cloned := map[string]bool{}
	linked := false
	next.activate(entries)
	for _, e := range entries {
		shelf := next.shelves[e.Kind]
		if !cloned[e.Kind] {
			shelf = slices.Clone(shelf)
			cloned[e.Kind] = true
		}
		var old *Entry
		i, ok := find(shelf, e.Name)
		if ok {
			old = shelf[i]
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
		if was, is := references(old), references(e); !slices.Equal(was, is) {
			if !linked {
				next.referrers = maps.Clone(t.referrers)
				linked = true
			}
			next.relink(e.Ref, was, is)
		}
	}
	return next
}

// WithSettings returns a tree with other settings and problems and the same entries.
func (t *Tree) WithSettings(s *schemas.SettingsSpec, problems []schemas.Problem) *Tree {
	next := *t
	next.settings = s
	next.problems = sortProblems(problems)
	return &next
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

func empty(e *Entry) bool {
	return e.Gone() && !e.HasStatus() && e.RunCount() == 0 && len(e.Claims) == 0
}

func find(shelf []*Entry, name string) (int, bool) {
	return slices.BinarySearchFunc(shelf, name, func(e *Entry, n string) int { return strings.Compare(e.Name, n) })
}

func sortProblems(ps []schemas.Problem) []schemas.Problem {
	ps = slices.Clone(ps)
	slices.SortStableFunc(ps, func(a, b schemas.Problem) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			strings.Compare(a.Message, b.Message))
	})
	return ps
}
