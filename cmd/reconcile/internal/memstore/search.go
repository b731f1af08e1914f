package memstore

import (
	"context"
	"errors"
	"slices"

	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
)

// Search implements [Store]. The ranking is BM25 over summaries and contents, see package lexical. What compaction merged is
// found as its originals, which are archived, as if it had not been compacted. Where archived observations are asked for,
// they come after the others, merged ones among these, each ranked among their like.
func (f *Files) Search(ctx context.Context, q Query) ([]Row, error) {
	if err := checkFilter(q.Filter); err != nil {
		return nil, err
	}
	limit := q.Limit
	if limit == 0 {
		limit = DefaultLimit
	}
	var rows []Row
	if q.Filter.Archived == Without && len(f.archives()) > 0 {
		err := f.again(func() (err error) {
			rows, err = f.searchUnited(ctx, q, limit)
			return err
		})
		return rows, err
	}
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

// searchUnited searches the memory as it was before it was compacted.
func (f *Files) searchUnited(ctx context.Context, q Query, limit int) ([]Row, error) {
	v, err := f.current()
	if err != nil {
		return nil, err
	}
	f.checkManifest(ctx, v)
	put, err := f.archived()
	if err != nil {
		return nil, err
	}
	u, err := f.unite(v, put)
	if err != nil {
		return nil, err
	}
	if limit < 0 {
		limit = v.len() + put.len()
	}
	now := f.anchors.recently()
	rows, err := u.search(f.ask(v, q.Filter, now), f.ask(put, q.Filter, now), q.Text, limit)
	return rows, errors.Join(err, ctx.Err())
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

// found is a row that a search found: the table that has it, its number there, and what was kept of it.
type found struct {
	table *table
	at    int
	kept  *shown
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
		t := a.v.parts[at.part].table
		rows = append(rows, found{t, at.row, t.kept[at.row].Load()})
	}
	out := make([]Row, len(hits))
	// First all that is there already: rows lie far apart, and the processor fetches several pieces of memory at once if
	// nothing is done with one before the next is asked for.
	for i := range rows {
		if rows[i].kept != nil {
			out[i] = rows[i].kept.row
		}
	}
	for i := range rows {
		r := &rows[i]
		if r.kept == nil {
			if r.kept, err = r.table.shown(r.at); err != nil {
				return nil, err
			}
			out[i] = r.kept.row
		}
		out[i].Score = float64(hits[i].Score)
		out[i].Stale = a.staleNow(r.kept)
	}
	return out, nil
}

// staleNow is stale for what a search shows. It is looked into once for each moment.
func (a *asked) staleNow(s *shown) string {
	if len(s.anchors) == 0 {
		return ""
	}
	last := s.said.Load()
	if last == nil || last.then != a.now.at {
		last = &said{a.now.at, a.stale(s.anchors, a.now)}
		s.said.Store(last)
	}
	return last.why
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
