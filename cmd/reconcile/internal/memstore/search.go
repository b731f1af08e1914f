package memstore

import (
	"context"
	"slices"
	"strings"
	"unsafe"

	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/vectors/lexical"
)

// Search implements [Store]. The ranking is BM25 over summaries and contents, see package lexical. Archived observations
// come after the others, each ranked among their like.
func (f *Files) Search(ctx context.Context, q Query) ([]Row, error) {
	if err := checkFilter(q.Filter); err != nil {
		return nil, err
	}
	limit := q.Limit
	if limit == 0 {
		limit = DefaultLimit
	}
	var rows []Row
	err := f.over(ctx, q.Filter, f.anchors.recently(), func(a *asked, archived bool) error {
		most := limit - len(rows)
		if limit < 0 {
			most = a.v.len()
		}
		found, err := a.search(q.Text, most)
		for i := range found {
			found[i].Archived = archived
		}
		if err == nil && archived {
			rows = append(rows, found...)
		} else {
			rows = found
		}
		return err
	})
	return rows, err
}

// accepts is passes for documents of the set; nil where all pass.
func (a *asked) accepts() func(doc int) bool {
	if a.filter == (Filter{}) {
		if a.v.replacedDocs() == nil {
			return nil
		}
		return func(doc int) bool { return !a.v.replaced.Has(doc) }
	}
	return func(doc int) bool {
		at := a.v.find(doc)
		return a.passes(at, a.v.row(at))
	}
}

// found is a row that a search found, and the table that has it.
type found struct {
	table *table
	at    int
	row   row
}

func (a *asked) search(text string, limit int) ([]Row, error) {
	hits, err := a.v.set.Search(text, limit, a.accepts())
	if err != nil || len(hits) == 0 {
		return nil, err
	}
	var few [DefaultLimit]found // on the stack: most searches need no more
	rows := few[:0]
	if len(hits) > len(few) {
		rows = make([]found, 0, len(hits))
	}
	for _, h := range hits {
		at := a.v.find(h.Doc)
		rows = append(rows, found{table: a.v.parts[at.part].table, at: at.row})
	}
	a.v.touched.Add(uint32(touch(rows)))
	for i := range rows {
		rows[i].row = rows[i].table.row(rows[i].at)
	}
	a.v.touched.Add(uint32(touchBlobs(rows)))
	return a.tellAll(hits, rows)
}

// tellAll tells of hits. What is read of a blob is a part of the table until all is known; then the texts that are
// wanted are copied, to one piece of memory for all.
func (a *asked) tellAll(hits []lexical.Hit, rows []found) ([]Row, error) {
	out, size := make([]Row, len(hits)), 0
	var few [4]schemas.Anchor
	anchors := few[:0]
	for i := range rows {
		r := &rows[i]
		raw, err := r.table.checkedBlob(r.at, r.row.blob)
		if err != nil {
			return nil, err
		}
		b, err := readBlob(unsafe.String(unsafe.SliceData(raw), len(raw)), anchors)
		if err != nil {
			return nil, err
		}
		anchors = b.anchors
		a.told(&out[i], r.table, &r.row, &b)
		out[i].Score = float64(hits[i].Score)
		size += len(b.id) + len(b.summary) + len(b.supersededBy)
	}
	var kept strings.Builder
	kept.Grow(size)
	for i := range out {
		for _, s := range []*string{&out[i].ID, &out[i].Summary, &out[i].SupersededBy} {
			from := kept.Len()
			kept.WriteString(*s)
			*s = kept.String()[from:]
		}
	}
	return out, nil
}

// touch reads a byte of each row before one is waited for: rows lie far apart, and the processor fetches several pieces
// of memory at once if none depends on another.
func touch(rows []found) (sum byte) {
	for i := range rows {
		sum += rows[i].table.rows[rows[i].at*rowSize]
	}
	return sum
}

// touchBlobs is touch for what is read of the blobs.
func touchBlobs(rows []found) (sum byte) {
	for i := range rows {
		if b, heap := rows[i].row.blob, rows[i].table.heap; b.at+b.size < len(heap) {
			for at := b.at; at < b.at+b.size; at += 64 {
				sum += heap[at]
			}
		}
	}
	return sum
}

// Known returns the id of an observation that says the same as content, or "": for memory.Source.
func (f *Files) Known(content string) string {
	v, err := f.current()
	if err != nil {
		return ""
	}
	const candidates = 3
	a := f.ask(v, Filter{}, nil)
	hits, err := v.set.Search(content, candidates, a.accepts())
	if err != nil {
		return ""
	}
	for _, h := range hits {
		at := v.find(h.Doc)
		r := v.row(at)
		id, err := v.parts[at.part].id(&r)
		if err != nil {
			return ""
		}
		data, err := f.readOrNil(f.issuePath(r.issue))
		if err != nil {
			return ""
		}
		if o := inFull(data, id); o != nil && memory.Same(o.Content, content) {
			return id
		}
	}
	return ""
}

// inFull reads one observation out of an issue file; nil if it is not there.
func inFull(data []byte, id string) *schemas.Observation {
	if o, ok := memory.Find(data, id); ok || data == nil {
		return o
	}
	m, err := memory.Parse(data)
	if err != nil {
		return nil
	}
	i := slices.IndexFunc(m.Observations, func(o schemas.Observation) bool { return o.ID == id })
	if i < 0 {
		return nil
	}
	return &m.Observations[i]
}
