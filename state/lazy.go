package state

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// Files under state/ are decoded on first access: a run does not access most of a tree. The bytes come from the cache,
// which holds only text that was decoded before or matched its shape, or from a file that matches its shape, so that
// decoding cannot fail.

func (h *lazyStatus) get() schemas.Status {
	if h == nil {
		return nil
	}
	if is := h.is.Load(); is != nil {
		return *is
	}
	if h.packed {
		is := h.decode(h.raw)
		if h.is.CompareAndSwap(nil, &is) {
			return is
		}
		return h.get()
	}
	h.once.Do(func() {
		if h.raw == nil {
			return
		}
		is := h.decode(nil)
		h.raw = nil
		h.is.Store(&is)
	})
	if is := h.is.Load(); is != nil {
		return *is
	}
	return nil
}

func (h *lazyStatus) decode(packed []byte) schemas.Status {
	is, ok := h.store.decodeStatusFile(h.path, h.raw, packed).(*lazyStatus)
	if !ok {
		panic(fmt.Sprintf("state: %s: what the cache holds of it does not decode", h.path))
	}
	return is.get()
}

// ReleaseStatus releases the memory of the decoded status, if it can be decoded again. The next call that needs it does that, with
// equal content; callers that hold it keep it.
func (e *Entry) ReleaseStatus() {
	if h := e.status; h != nil && h.packed {
		h.is.Store(nil)
	}
}

func (h *lazyRun) get() *schemas.Run {
	if h.deferred != nil {
		if h = h.resolved(); h == nil {
			return nil
		}
	}
	h.once.Do(func() {
		if h.raw == nil {
			return
		}
		is, err := decodeRun(h.key, h.raw, h.raw)
		if err != nil {
			panic(fmt.Sprintf("state: the record %s: what the cache holds of it does not decode: %v", h.key, err))
		}
		h.is, h.raw = is, nil
	})
	return h.is
}

func (f *fileRuns) of(files []*lazyRun) []*schemas.Run {
	f.once.Do(func() {
		f.all = make([]*schemas.Run, 0, len(files))
		for _, h := range files {
			if r := h.get(); r != nil {
				f.all = append(f.all, r)
			}
		}
		sortRuns(f.all)
	})
	return f.all
}

// reuseSorted takes over the sorted records of the entry's former version, if they are of the same files.
func (h *lazyRuns) reuseSorted(was *lazyRuns) {
	switch {
	case h == nil || len(h.files) == 0:
	case was != nil && was.inFiles != nil && slices.Equal(h.files, was.files):
		h.inFiles = was.inFiles
	default:
		h.inFiles = new(fileRuns)
	}
}

func (h *lazyRuns) get() []*schemas.Run {
	if h == nil {
		return nil
	}
	h.once.Do(func() {
		if h.all != nil {
			return
		}
		filed := h.inFiles
		if filed == nil {
			filed = new(fileRuns)
		}
		sortRuns(h.more) // sorted already, unless they are in several journals
		if h.all = mergeRuns(filed.of(h.files), h.more); len(h.all) == 0 {
			h.all = nil // as without records
		}
	})
	return h.all
}

// mergeRuns merges two sorted lists.
func mergeRuns(a, b []*schemas.Run) []*schemas.Run {
	if len(a) == 0 || len(b) == 0 {
		return append(a[:len(a):len(a)], b...)
	}
	out := make([]*schemas.Run, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		from := &a
		if compareRuns(b[0], a[0]) < 0 {
			from = &b
		}
		out, *from = append(out, (*from)[0]), (*from)[1:]
	}
	return append(append(out, a...), b...)
}

func (h *lazyRuns) traits() (t Traits) {
	if h == nil {
		return 0
	}
	if h.files == nil && h.more == nil {
		for _, r := range h.all {
			t |= traitsOf(r)
		}
		return t
	}
	for _, f := range h.files {
		if f = f.resolved(); f != nil {
			t |= f.has
		}
	}
	for _, r := range h.more {
		t |= traitsOf(r)
	}
	return t
}

func (h *lazyRuns) count() int {
	if h == nil {
		return 0
	}
	n := h.n
	for _, f := range h.files {
		if f.resolved() == nil {
			n--
		}
	}
	return n
}

// same reports, without decoding, whether two lists have the same records.
func (h *lazyRuns) same(o *lazyRuns) bool {
	if h == o {
		return true
	}
	if h == nil || o == nil || len(h.files)+len(h.more) == 0 || len(h.files) != len(o.files) || len(h.more) != len(o.more) {
		return false
	}
	for i, f := range h.files {
		if f != o.files[i] {
			return false
		}
	}
	for i, r := range h.more {
		if r != o.more[i] {
			return false
		}
	}
	return true
}

// addRun and addUnfiled add to the records of a new entry, in any order.
func (e *Entry) addRun(r *lazyRun) {
	runs := e.someRuns()
	runs.files, runs.n = append(runs.files, r), runs.n+1
}

// addUnfiled adds the results of a journal, whose keys differ, that the entry does not have yet.
func (e *Entry) addUnfiled(results []*schemas.Run) {
	if len(results) == 0 {
		return
	}
	runs := e.someRuns()
	if runs.n == 0 {
		runs.more, runs.n = slices.Clone(results), len(results)
		return
	}
	has := make(map[string]bool, runs.n)
	for _, r := range runs.files {
		has[r.key] = r.resolved() != nil
	}
	for _, r := range runs.more {
		has[r.Key] = true
	}
	for _, r := range results {
		if !has[r.Key] {
			runs.more, runs.n = append(runs.more, r), runs.n+1
		}
	}
}

func (e *Entry) someRuns() *lazyRuns {
	if e.runs == nil {
		e.runs = new(lazyRuns)
	}
	return e.runs
}

// Status decodes the entry's status on first access and returns it; nil without a status file. Callers must not change it.
func (e *Entry) Status() schemas.Status { return e.status.get() }

// Brief returns the brief of the status; empty without a status. Callers must not change it.
func (e *Entry) Brief() *schemas.Brief {
	if e.status == nil {
		return new(schemas.Brief)
	}
	return e.status.inBrief()
}

// inBrief returns the brief of the status, without decoding it.
func (h *lazyStatus) inBrief() *schemas.Brief {
	h.briefOnce.Do(func() { h.brief = schemas.BriefOf(h.get()) })
	return &h.brief
}

// HasStatus reports whether the entry has a status, which it does not decode.
func (e *Entry) HasStatus() bool { return e.status != nil }

// SetStatus sets the status of an entry that is not in a tree yet; nil removes it.
func (e *Entry) SetStatus(s schemas.Status) { e.status = newLazyStatus(s) }

// Runs returns the runs of the entry's object that are finished, sorted by Node, NodeKey and Seq. Callers must not change
// them.
func (e *Entry) Runs() []*schemas.Run { return e.runs.get() }

// RunsHave reports whether any run of the entry has one of the traits t, without decoding the records.
func (e *Entry) RunsHave(t Traits) bool { return e.runs.traits()&t != 0 }

// RunCount counts the records of finished runs of the entry, without decoding them.
func (e *Entry) RunCount() int { return e.runs.count() }

// SetRuns sets all runs of an entry that is not in a tree yet. They must be sorted.
func (e *Entry) SetRuns(runs []*schemas.Run) {
	if e.runs = nil; len(runs) > 0 {
		e.runs = &lazyRuns{all: runs, n: len(runs)}
	}
}

func sortRuns(rs []*schemas.Run) { slices.SortFunc(rs, compareRuns) }

func compareRuns(a, b *schemas.Run) int {
	if c := strings.Compare(a.Node, b.Node); c != 0 {
		return c
	}
	if c := strings.Compare(a.NodeKey, b.NodeKey); c != 0 {
		return c
	}
	return cmp.Or(cmp.Compare(a.Seq, b.Seq), strings.Compare(a.Key, b.Key))
}

// SpecOf returns the usable spec of an entry, which may be nil, if it is of type S; else nil.
func SpecOf[S schemas.Spec](e *Entry) S {
	if e == nil {
		var none S
		return none
	}
	return schemas.SpecAs[S](e.Object)
}

// StatusOf returns the status of an entry, which may be nil, if it is of type S; else an empty one. Callers must not change it.
func StatusOf[S any, P interface {
	*S
	schemas.Status
}](e *Entry) P {
	if e != nil {
		if st, ok := e.Status().(P); ok {
			return st
		}
	}
	return new(S)
}

// A process that reads a tree without a cache does not need most of its records. If there are many, Load defers reading
// them until one of them is accessed, or damaged files are listed: then all of them are read.

// minDeferredRecords is the number of unknown records from which on Load defers reading them.
const minDeferredRecords = 1000

// deferRecords takes the records out of the list of files to read, if they are many, and returns placeholders.
func (s *Store) deferRecords(want []scanEntry) (now []scanEntry, instead []*file, l *deferredRecords) {
	record := func(f scanEntry) bool { return f.area == areaRuns }
	n := 0
	for i := range want {
		if record(want[i]) {
			n++
		}
	}
	if n <= s.deferFrom {
		return want, nil, nil
	}
	root, err := s.root.OpenRoot(".")
	if err != nil {
		return want, nil, nil
	}
	l = &deferredRecords{store: s, root: root, want: make([]scanEntry, 0, n)}
	files, runs := make([]file, n), make([]lazyRun, n)
	for _, w := range want {
		if !record(w) {
			continue
		}
		i := len(l.want)
		runs[i] = lazyRun{key: s.layout().runKey(w.path), deferred: l}
		files[i] = file{path: w.path, area: w.area, body: &runs[i]}
		instead = append(instead, &files[i])
		l.want = append(l.want, w)
	}
	return slices.DeleteFunc(want, record), instead, l
}

// read reads all of them, once.
func (l *deferredRecords) read() {
	l.once.Do(func() {
		files, troubles, _ := l.store.readFiles(context.Background(), l.root, l.want, nil)
		l.store.cache.flush()
		_ = l.root.Close()
		l.want = nil
		m := newModel(l.store.layout())
		l.found = make(map[string]*lazyRun, len(files))
		for _, f := range files {
			switch b := f.body.(type) {
			case *lazyRun:
				l.found[b.key] = b
			case *damage:
				l.problems = append(l.problems, m.damaged(f, b))
			}
		}
		for _, t := range troubles {
			l.problems = append(l.problems, m.scanProblem(t))
		}
	})
}

// isDeferred reports whether f is the placeholder of a record.
func (f *file) isDeferred() bool {
	h, ok := f.body.(*lazyRun)
	return ok && h.deferred != nil
}

// resolved returns the record itself, once it was read; nil if it cannot be used.
func (h *lazyRun) resolved() *lazyRun {
	if h.deferred == nil {
		return h
	}
	h.deferred.read()
	return h.deferred.found[h.key]
}

func newLazyStatus(s schemas.Status) *lazyStatus {
	if s == nil {
		return nil
	}
	h := new(lazyStatus)
	h.is.Store(&s)
	return h
}

func newLazyRun(key string, r *schemas.Run) *lazyRun {
	return &lazyRun{key: key, is: r, has: traitsOf(r)}
}
