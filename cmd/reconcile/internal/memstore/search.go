package memstore

import (
	"context"
	"slices"
	"strings"

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

// accepts is passes for documents of the set.
func (a *asked) accepts() func(doc int) bool {
	if a.filter == (Filter{}) {
		return func(doc int) bool { return !a.v.isReplaced(doc) }
	}
	return func(doc int) bool {
		at := a.v.find(doc)
		return a.passes(at, a.v.row(at))
	}
}

func (a *asked) search(text string, limit int) ([]Row, error) {
	hits, err := a.v.set.Search(text, limit, a.accepts())
	if err != nil || len(hits) == 0 {
		return nil, err
	}
	rows := make([]row, len(hits))
	size := 0
	for i, h := range hits {
		rows[i] = a.v.row(a.v.find(h.Doc))
		size += rows[i].blob.size
	}
	var room strings.Builder // of all texts
	room.Grow(size)
	for i, h := range hits {
		raw, err := a.v.parts[a.v.find(h.Doc).part].piece(rows[i].blob)
		if err != nil {
			return nil, err
		}
		room.Write(raw)
	}
	return a.tellAll(hits, rows, room.String())
}

// tellAll tells of hits, whose blobs are in texts one after the other.
func (a *asked) tellAll(hits []lexical.Hit, rows []row, texts string) ([]Row, error) {
	out := make([]Row, len(hits))
	var anchors []schemas.Anchor
	for i, h := range hits {
		r := &rows[i]
		b, err := readBlob(texts[:r.blob.size], anchors)
		if err != nil {
			return nil, err
		}
		texts, anchors = texts[r.blob.size:], b.anchors
		a.told(&out[i], a.v.parts[a.v.find(h.Doc).part].table, r, &b)
		out[i].Score = float64(h.Score)
	}
	return out, nil
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
