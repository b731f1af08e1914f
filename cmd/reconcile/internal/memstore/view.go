package memstore

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors/lexical"
)

// A view is the memory at one time, as in its issue files. It is immutable and safe for concurrent use.
//
// It consists of parts: a large table that is rarely rebuilt (the base), and small ones of issue files that changed since.
// If several parts have an issue, the last one counts; its rows in the others are dead.
type memoryView struct {
	at     time.Time // when the issue files were checked
	parts  []part
	owners map[int]owner // by issue
	set    *lexical.Set  // nil where a part is bare
	bad    map[int]error // unreadable issue files

	mark     sync.Once
	replaced lexical.Bitmap // see replacedDocs
}

type part struct {
	table *table
	dead  lexical.Bitmap // rows that another part replaced, or that were removed
	first int            // number of its first document in the set
	live  int
	saved bool // it is in the cache
}

// owner is the part that has the rows of an issue, with the present state of its file.
type owner struct {
	part int
	source
}

// newView builds a view of tables. seen are the present issue files; those without a table are left out.
func newView(at time.Time, tables []part, seen map[int]source) (*memoryView, error) {
	v := &memoryView{at: at, parts: slices.Clone(tables), owners: make(map[int]owner, len(seen)), bad: map[int]error{}}
	first := 0
	for i := range v.parts {
		p := &v.parts[i]
		p.first, p.dead, p.live = first, nil, p.table.len()
		first += p.table.len()
		for _, s := range p.table.sources() {
			now, exists := seen[s.issue]
			if before, ok := v.owners[s.issue]; ok {
				v.markDead(before)
				delete(v.owners, s.issue)
			}
			if !exists || now.hash != s.hash {
				v.markDead(owner{i, s})
				continue
			}
			s.id, s.racy = now.id, now.racy
			v.owners[s.issue] = owner{i, s}
		}
	}
	if anyBare(v.parts) {
		return v, nil
	}
	var err error
	v.set, err = lexical.NewSet(wordSegments(v.parts)...)
	return v, err
}

// bury marks rows as dead.
func (v *memoryView) markDead(o owner) {
	p := &v.parts[o.part]
	for i := range o.rows {
		p.dead.Add(o.first + i)
	}
	p.live -= o.rows
}

// len returns the number of observations.
func (v *memoryView) len() (n int) {
	for i := range v.parts {
		n += v.parts[i].live
	}
	return n
}

// issues returns the numbers of all issues, sorted.
func (v *memoryView) issues() []int { return slices.Sorted(maps.Keys(v.owners)) }

// place is the position of a row.
type place struct{ part, row int }

// find returns the place of a document of the set.
func (v *memoryView) find(doc int) place {
	i := len(v.parts) - 1
	for v.parts[i].first > doc {
		i--
	}
	return place{i, doc - v.parts[i].first}
}

// replacedDocs returns the documents of the set that another observation superseded, or nil.
func (v *memoryView) replacedDocs() lexical.Bitmap {
	v.mark.Do(func() {
		for i := range v.parts {
			p := &v.parts[i]
			for row := range p.table.len() {
				if p.table.row(row).superseded {
					v.replaced.Add(p.first + row)
				}
			}
		}
	})
	return v.replaced
}

func (v *memoryView) row(at place) row             { return v.parts[at.part].table.row(at.row) }
func (v *memoryView) agent(at place, r row) string { return v.parts[at.part].table.word(r.agent) }
func (v *memoryView) category(at place, r row) string {
	return v.parts[at.part].table.word(r.category)
}

// eachOf calls fn for the rows of an issue, in the order of its file, until it returns false.
func (v *memoryView) eachOf(issue int, fn func(place, row) bool) bool {
	o, ok := v.owners[issue]
	if !ok {
		return true
	}
	for i := range o.rows {
		at := place{o.part, o.first + i}
		if !fn(at, v.row(at)) {
			return false
		}
	}
	return true
}

// each calls fn for all rows by issue, in the order of the issue's file.
func (v *memoryView) each(fn func(place, row) bool) {
	for _, issue := range v.issues() {
		if !v.eachOf(issue, fn) {
			return
		}
	}
}

// index returns the line of an observation in the manifest of the memory, by its row.
func (v *memoryView) index(at place, r row) (schemas.ObservationIndex, error) {
	t := v.parts[at.part].table
	b, err := t.blob(&r)
	return t.index(&r, &b), err
}

// indexOf returns an issue's lines in the manifest.
func (v *memoryView) indexOf(issue int) (out []schemas.ObservationIndex, err error) {
	v.eachOf(issue, func(at place, r row) bool {
		var line schemas.ObservationIndex
		if line, err = v.index(at, r); err == nil {
			out = append(out, line)
		}
		return err == nil
	})
	return out, err
}

// merge builds one table of the parts from the given one on; basis is the key of the table that it extends.
func (v *memoryView) merge(from int, basis uint64) (*table, error) {
	var b tableBuilder
	b.reserve(v.parts[from:])
	for i := from; i < len(v.parts); i++ {
		for _, s := range v.owned(i) {
			if err := b.copyFrom(v.parts[i].table, s); err != nil {
				return nil, err
			}
		}
	}
	if anyBare(v.parts[from:]) {
		return openTable(b.bytes(nil, basis))
	}
	lex, err := lexical.Merge(wordSegments(v.parts[from:])...)
	if err != nil {
		return nil, fmt.Errorf("merge the memory's index: %w", err)
	}
	return openTable(b.bytes(lex.Bytes(), basis))
}

// owned returns the issue files whose rows a part has, in row order.
func (v *memoryView) owned(part int) []source {
	var out []source
	for _, o := range v.owners {
		if o.part == part {
			out = append(out, o.source)
		}
	}
	slices.SortFunc(out, func(a, b source) int { return cmp.Or(cmp.Compare(a.first, b.first), cmp.Compare(a.issue, b.issue)) })
	return out
}

func anyBare(parts []part) bool {
	return slices.ContainsFunc(parts, func(p part) bool { return p.table.lex == nil })
}

// places returns the rows of a view of one table, by id.
func (v *memoryView) places() (map[string]int, error) {
	out := map[string]int{}
	for i := range v.parts {
		p := &v.parts[i]
		for n := range p.table.len() {
			r := p.table.row(n)
			id, err := p.table.id(&r)
			if err != nil {
				return nil, err
			}
			out[id] = n
		}
	}
	return out, nil
}

// manifest returns the manifest of all rows.
func (v *memoryView) manifest() ([]byte, error) {
	lines := make([]schemas.ObservationIndex, 0, v.len())
	var err error
	v.each(func(at place, r row) bool {
		var line schemas.ObservationIndex
		line, err = v.index(at, r)
		lines = append(lines, line)
		return err == nil
	})
	return memory.Manifest(lines), err
}

// taken returns the captures that the issue files hold.
func (v *memoryView) taken() (map[string]memory.Taken, error) {
	out := map[string]memory.Taken{}
	for _, o := range v.owners {
		m, err := v.parts[o.part].table.taken(&o.source)
		if err != nil {
			return nil, err
		}
		memory.TakenIn(m, out)
	}
	return out, nil
}

// holds reports whether a view is of exactly these files.
func (v *memoryView) holds(ids map[int]state.Identity) bool {
	if len(v.owners) != len(ids) {
		return false
	}
	for issue, id := range ids {
		if o, ok := v.owners[issue]; !ok || o.racy || o.id != id {
			return false
		}
	}
	return true
}
