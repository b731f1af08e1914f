package state

import (
	"fmt"
	"slices"
	"sync"

	"reconcile.dev/reconcile/schemas"
)

// What files under state/ hold is decoded when it is first asked for: most of a tree is not looked at in a run. The bytes
// are those of the cache, which has only what was decoded before or had the shape of what decodes, or of a file that has that
// shape, so that this cannot fail.

// heldStatus is the status in a file.
type heldStatus struct {
	once  sync.Once
	store *Store
	path  string
	raw   []byte // what to decode; nil when that is done
	is    schemas.Status

	sumUp sync.Once
	brief schemas.Brief
}

func holdStatus(s schemas.Status) *heldStatus {
	if s == nil {
		return nil
	}
	return &heldStatus{is: s}
}

func (h *heldStatus) get() schemas.Status {
	if h == nil {
		return nil
	}
	h.once.Do(func() {
		if h.raw == nil {
			return
		}
		is, ok := h.store.decodeStatusFile(h.path, h.raw).(*heldStatus)
		if !ok {
			panic(fmt.Sprintf("state: %s: what the cache holds of it does not decode", h.path))
		}
		h.is, h.raw = is.is, nil
	})
	return h.is
}

// inBrief sums up the status, without decoding it.
func (h *heldStatus) inBrief() *schemas.Brief {
	h.sumUp.Do(func() { h.brief = schemas.BriefOf(h.get()) })
	return &h.brief
}

// heldRun is the record in a file.
type heldRun struct {
	once  sync.Once
	later *later // that it was left to; then it has nothing else but its key
	key   string
	has   Traits
	raw   []byte // what to decode; nil when that is done
	is    *schemas.Run
}

func (h *heldRun) get() *schemas.Run {
	if h.later != nil {
		if h = h.known(); h == nil {
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

// Traits say what records have, all of them together.
type Traits uint8

// What a record may have.
const (
	Asks    Traits = 1 << iota // a question
	Learned                    // something to remember
	OfAgent                    // an agent that it is of
	Outputs                    // declared outputs
)

func traitsOf(r *schemas.Run) (t Traits) {
	for _, has := range []struct {
		it   bool
		mark Traits
	}{{r.Asks != nil, Asks}, {len(r.Learned) > 0, Learned}, {r.Agent != "", OfAgent}, {len(r.Outputs) > 0, Outputs}} {
		if has.it {
			t |= has.mark
		}
	}
	return t
}

// packedOf is the text of a file, without space, that its body was not decoded from yet; nil where there is none.
func packedOf(body any) []byte {
	switch b := body.(type) {
	case *heldStatus:
		return b.raw
	case *heldRun:
		return b.raw
	}
	return nil
}

func holdRun(key string, r *schemas.Run) *heldRun { return &heldRun{key: key, is: r, has: traitsOf(r)} }

// heldRuns are the records of an object.
type heldRuns struct {
	once  sync.Once
	files []*heldRun
	more  []*schemas.Run // of journals
	n     int            // how many they are
	all   []*schemas.Run // sorted, once they were asked for
	filed *filedRuns     // of files, where they were sorted before; may be nil
}

// filedRuns are the records of some files, shared by the entries of an object that have the same ones.
type filedRuns struct {
	once sync.Once
	all  []*schemas.Run // sorted
}

func (f *filedRuns) of(files []*heldRun) []*schemas.Run {
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

// follow has the records of the same files, which the entry had before, not sorted again.
func (h *heldRuns) follow(was *heldRuns) {
	switch {
	case h == nil || len(h.files) == 0:
	case was != nil && was.filed != nil && slices.Equal(h.files, was.files):
		h.filed = was.filed
	default:
		h.filed = new(filedRuns)
	}
}

func (h *heldRuns) get() []*schemas.Run {
	if h == nil {
		return nil
	}
	h.once.Do(func() {
		if h.all != nil {
			return
		}
		filed := h.filed
		if filed == nil {
			filed = new(filedRuns)
		}
		sortRuns(h.more) // in order already, unless they are of several journals
		if h.all = mergeRuns(filed.of(h.files), h.more); len(h.all) == 0 {
			h.all = nil // as where there are no records
		}
	})
	return h.all
}

// mergeRuns joins two sorted lists.
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

func (h *heldRuns) traits() (t Traits) {
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
		if f = f.known(); f != nil {
			t |= f.has
		}
	}
	for _, r := range h.more {
		t |= traitsOf(r)
	}
	return t
}

func (h *heldRuns) count() int {
	if h == nil {
		return 0
	}
	n := h.n
	for _, f := range h.files {
		if f.known() == nil {
			n--
		}
	}
	return n
}

// same reports, without decoding, whether two lists are of the same records.
func (h *heldRuns) same(o *heldRuns) bool {
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

// addRun and addResult add to the records of an entry in the making, in any order.
func (e *Entry) addRun(r *heldRun) {
	runs := e.someRuns()
	runs.files, runs.n = append(runs.files, r), runs.n+1
}

func (e *Entry) addResult(r *schemas.Run) {
	runs := e.someRuns()
	runs.more, runs.n = append(runs.more, r), runs.n+1
}

func (e *Entry) someRuns() *heldRuns {
	if e.runs == nil {
		e.runs = new(heldRuns)
	}
	return e.runs
}

// Status is what the status file says; nil when there is no such file. Callers must not change it.
func (e *Entry) Status() schemas.Status { return e.status.get() }

// Brief sums up the status; it is empty when there is none. Callers must not change it.
func (e *Entry) Brief() *schemas.Brief {
	if e.status == nil {
		return new(schemas.Brief)
	}
	return e.status.inBrief()
}

// HasStatus reports whether there is a status.
func (e *Entry) HasStatus() bool { return e.status != nil }

// SetStatus replaces the status of an entry that no tree has yet; nil takes it away.
func (e *Entry) SetStatus(s schemas.Status) { e.status = holdStatus(s) }

// Runs are the finished effects of this object, sorted by Node, NodeKey and Seq. Callers must not change them.
func (e *Entry) Runs() []*schemas.Run { return e.runs.get() }

// RunsHave reports whether some record has one of the traits. Nothing is decoded for it.
func (e *Entry) RunsHave(t Traits) bool { return e.runs.traits()&t != 0 }

// RunCount is how many Runs there are.
func (e *Entry) RunCount() int { return e.runs.count() }

// SetRuns replaces the records of an entry that no tree has yet. They must be sorted.
func (e *Entry) SetRuns(runs []*schemas.Run) {
	if e.runs = nil; len(runs) > 0 {
		e.runs = &heldRuns{all: runs, n: len(runs)}
	}
}
