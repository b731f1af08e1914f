package memstore

import (
	"context"
	"errors"
	"slices"

	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
)

// Search implements [Store]. The ranking is BM25 over summaries and contents, see package lexical. Merged observations are
// found as their archived originals, as if they had not been compacted. If archived observations are requested, they follow
// the others, including merged ones, each group ranked separately.
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
			rows, err = f.searchUncompacted(ctx, q, limit)
			return err
		})
		return rows, err
	}
	err := f.over(ctx, q.Filter, f.anchors.recentDigests(), func(a *rowFilter, archived bool) error {
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

// searchUncompacted searches the memory as it was before compaction.
func (f *Files) searchUncompacted(ctx context.Context, q Query, limit int) ([]Row, error) {
	v, err := f.current()
	if err != nil {
		return nil, err
	}
	f.checkManifest(ctx, v)
	put, err := f.archived()
	if err != nil {
		return nil, err
	}
	u, err := f.uncompact(v, put)
	if err != nil {
		return nil, err
	}
	if limit < 0 {
		limit = v.len() + put.len()
	}
	now := f.anchors.recentDigests()
	rows, err := u.search(f.newRowFilter(v, q.Filter, now), f.newRowFilter(put, q.Filter, now), q.Text, limit)
	return rows, errors.Join(err, ctx.Err())
}

// accepts is matches for documents of the set; nil if all match.
func (a *rowFilter) accepts() func(doc int) bool {
	if a.filter == (Filter{}) {
		if a.v.replacedDocs() == nil {
			return nil
		}
		return func(doc int) bool { return !a.v.replaced.Has(doc) }
	}
	return func(doc int) bool {
		at := a.v.find(doc)
		return a.matches(at, a.v.row(at))
	}
}

// found is a row found by a search: its table, its number there, and its cached form.
type found struct {
	table *table
	at    int
	kept  *shown
}

func (a *rowFilter) search(text string, limit int) ([]Row, error) {
	hits, err := a.v.set.Search(text, limit, a.accepts())
	if err != nil || len(hits) == 0 {
		return nil, err
	}
	var few [DefaultLimit]found // on the stack: enough for most searches
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
	// First copy all cached rows: they are scattered in memory, and independent loads let the processor fetch several at once.
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

// staleNow is why for a search result. It is computed once for each snapshot of digests.
func (a *rowFilter) staleNow(s *shown) string {
	if len(s.anchors) == 0 {
		return ""
	}
	last := s.staleness.Load()
	if last == nil || last.then != a.now.at {
		last = &staleness{a.now.at, a.files.stale(s.anchors, a.now)}
		s.staleness.Store(last)
	}
	return last.why
}

// Known searches the store for an observation that already has this content, and returns its id, or "". It is for
// memory.Source.
func (f *Files) Known(content string) string {
	v, err := f.current()
	if err != nil {
		return ""
	}
	const candidates = 3
	a := f.newRowFilter(v, Filter{}, nil)
	hits, err := v.set.Search(content, candidates, a.accepts())
	if err != nil {
		return ""
	}
	for _, h := range hits {
		at := v.find(h.Doc)
		r := v.row(at)
		id, err := v.parts[at.part].table.id(&r)
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

// inFull returns one observation from an issue file; nil if it is missing.
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
