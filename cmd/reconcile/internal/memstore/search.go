package memstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/vectors/lexical"
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

// stale says which files a memory is anchored in have changed since; "" if none.
func (f *Files) stale(all []schemas.Anchor, m *digestSnapshot) string {
	var changed []string
	for _, a := range all {
		if a.Digest == "" {
			continue
		}
		now, ok := m.digest(a.Path)
		if !ok {
			now = f.Digest(a.Path)
			m.found(strings.Clone(a.Path), now) // the path may be a slice of a large string
		}
		switch {
		case now == "" || now == a.Digest:
		case now == schemas.AnchorAbsent:
			changed = append(changed, a.Path+" is gone since")
		case a.Digest == schemas.AnchorAbsent:
			changed = append(changed, a.Path+" exists since")
		default:
			changed = append(changed, a.Path+" changed since")
		}
	}
	const most = 3
	if more := len(changed) - most; more > 0 {
		changed = append(changed[:most], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(changed, ", ")
}

func hasAll(places map[string]int, ids []string) bool {
	return !slices.ContainsFunc(ids, func(id string) bool { _, ok := places[id]; return !ok })
}

// Choice selects whether observations of a class are included.
type Choice int

// admits reports whether an observation passes; is tells whether it belongs to the class.
func (c Choice) admits(is bool) bool { return c == With || is == (c == Only) }

// rowFilter is a filter with the data to match rows of one view.
type rowFilter struct {
	files        *Files
	filter       Filter
	v            *memoryView
	since, until int64 // milliseconds; until is 0 for no bound
	now          *digestSnapshot
}

func (f *Files) newRowFilter(v *memoryView, filter Filter, now *digestSnapshot) *rowFilter {
	a := &rowFilter{filter: filter, files: f, v: v, now: now, since: -1 << 62}
	if !filter.Since.IsZero() {
		a.since = filter.Since.UnixMilli()
	}
	if !filter.Until.IsZero() {
		a.until = filter.Until.UnixMilli()
	}
	return a
}

// matches reports whether a row is selected.
func (a *rowFilter) matches(at place, r row) bool {
	switch {
	case a.filter.Issue != nil && r.issue != *a.filter.Issue,
		a.filter.Agent != "" && a.v.agent(at, r) != a.filter.Agent,
		a.filter.Category != "" && a.v.category(at, r) != a.filter.Category,
		r.ms < a.since, a.until != 0 && r.ms >= a.until,
		!a.filter.Superseded.admits(r.superseded):
		return false
	}
	if !a.filter.Stale {
		return true
	}
	return r.anchored && a.why(at, r) != ""
}

// why returns why a row may be stale.
func (a *rowFilter) why(at place, r row) string {
	b, err := a.v.parts[at.part].table.blob(&r)
	if err != nil {
		return ""
	}
	return a.files.stale(b.anchors, a.now)
}

// toRow returns the row for people and programs.
func (a *rowFilter) toRow(at place, r row) (Row, error) {
	t := a.v.parts[at.part].table
	b, err := t.blob(&r)
	if err != nil {
		return Row{}, err
	}
	out := t.toRow(&r, &b)
	out.Stale = a.files.stale(b.anchors, a.now)
	return out, nil
}

func (a *rowFilter) list(archived bool) (rows []Row, err error) {
	a.v.each(func(at place, r row) bool {
		if !a.matches(at, r) {
			return true
		}
		var told Row
		told, err = a.toRow(at, r)
		told.Archived = archived
		rows = append(rows, told)
		return err == nil
	})
	return rows, err
}

func checkFilter(f Filter) error {
	if f.Issue != nil {
		if err := checkIssue(*f.Issue); err != nil {
			return err
		}
	}
	if f.Category != "" && !slices.Contains(schemas.Categories(), f.Category) {
		return fmt.Errorf("%w: %q is no category; they are %s", ErrInvalid, f.Category, strings.Join(schemas.Categories(), ", "))
	}
	return nil
}

// lexicalDocument returns the searchable text of an observation. Of equal scores, the newer ranks first.
func lexicalDocument(o *schemas.Observation) lexical.Document {
	return lexical.Document{Title: o.Summary, Body: o.Content, Key: ^uint64(o.Timestamp.UnixMilli())}
}
