package memstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// ByID reads the observation with an id from the issue file that the id names, or else from the issue's archive. It
// implements [Store].
func (f *Files) ByID(ctx context.Context, id string) (schemas.Observation, error) {
	_, issue, _, ok := memory.ParseID(id)
	if !ok {
		return schemas.Observation{}, badID(id)
	}
	for _, p := range []string{f.issuePath(issue), f.archivePath(issue)} {
		m, err := f.readIssue(p, issue)
		if err != nil {
			return schemas.Observation{}, err
		}
		for i := range m.Observations {
			if m.Observations[i].ID == id {
				return m.Observations[i], ctx.Err()
			}
		}
	}
	return schemas.Observation{}, fmt.Errorf("%w: %s", ErrUnknown, id)
}

// ByIssue implements [Store].
func (f *Files) ByIssue(ctx context.Context, issue int) ([]schemas.Observation, error) {
	if err := checkIssue(issue); err != nil {
		return nil, err
	}
	m, err := f.readIssue(f.issuePath(issue), issue)
	if err != nil {
		return nil, err
	}
	return m.Observations, ctx.Err()
}

// readIssue reads an issue file or an archive; a missing file is empty.
func (f *Files) readIssue(p string, issue int) (*schemas.MemoryFile, error) {
	return f.readWith(memory.Parse, p, issue)
}

// parsing is memory.Parse or memory.ParseVerbatim.
type parsing func([]byte) (*schemas.MemoryFile, error)

func (f *Files) readWith(parse parsing, p string, issue int) (*schemas.MemoryFile, error) {
	data, err := f.readOrNil(p)
	if err != nil || data == nil {
		return &schemas.MemoryFile{IssueNumber: issue}, err
	}
	m, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w; the next run of reconcile moves it aside and makes it anew", p, err)
	}
	return m, nil
}

// Each calls fn for each complete observation, by issue and in file order, archived ones last in their issue, until fn
// returns an error, which it returns. It skips unreadable files. It is for audits: observations of third-party programs are
// returned unredacted.
func (f *Files) Each(ctx context.Context, fn func(*schemas.Observation) error) error {
	v, err := f.current()
	if err != nil {
		return err
	}
	issues := v.issues()
	for issue := range f.archives() {
		if _, ok := v.owners[issue]; !ok {
			issues = append(issues, issue)
		}
	}
	slices.Sort(issues)
	for _, issue := range issues {
		for _, p := range []string{f.issuePath(issue), f.archivePath(issue)} {
			m, err := f.readWith(memory.ParseVerbatim, p, issue)
			if err != nil {
				continue
			}
			for i := range m.Observations {
				if err := fn(&m.Observations[i]); err != nil {
					return err
				}
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}

// rowFilter is a filter with the data to match rows of one view.
type rowFilter struct {
	files        *Files
	filter       Filter
	v            *view
	since, until int64 // milliseconds; until is 0 for no bound
	now          *digestSnapshot
}

func (f *Files) newRowFilter(v *view, filter Filter, now *digestSnapshot) *rowFilter {
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

// List implements [Store].
func (f *Files) List(ctx context.Context, filter Filter) ([]Row, error) {
	if err := checkFilter(filter); err != nil {
		return nil, err
	}
	var rows []Row
	err := f.over(ctx, filter, new(digestSnapshot), func(a *rowFilter, archived bool) error {
		found, err := a.list(archived)
		if err == nil {
			rows = append(rows, found...)
		}
		return err
	})
	slices.SortStableFunc(rows, func(a, b Row) int { return a.IssueNumber - b.IssueNumber })
	return rows, err
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

// over calls fn for the views that a filter selects: the issue files, the archives. Anchored files are judged by the
// digests in now.
func (f *Files) over(ctx context.Context, filter Filter, now *digestSnapshot, fn func(a *rowFilter, archived bool) error) error {
	if filter.Archived != Only {
		err := f.again(func() error {
			v, err := f.current()
			if err != nil {
				return err
			}
			f.checkManifest(ctx, v)
			return fn(f.newRowFilter(v, filter, now), false)
		})
		if err != nil {
			return err
		}
	}
	if filter.Archived == Without {
		return ctx.Err()
	}
	v, err := f.archived()
	if err == nil {
		err = fn(f.newRowFilter(v, filter, now), true)
	}
	return errors.Join(err, ctx.Err())
}

// again calls fn, and calls it again with a view built without the cache if the cache is damaged.
func (f *Files) again(fn func() error) error {
	err := fn()
	if !damagedCache(err) {
		return err
	}
	f.mu.Lock()
	_, err = f.startOver(true)
	f.mu.Unlock()
	if err != nil {
		return err
	}
	return fn()
}

// checkManifest updates the manifest if this program did not write its present form: nothing here reads it, but other
// programs do. It checks once.
func (f *Files) checkManifest(ctx context.Context, v *view) {
	f.mu.Lock()
	done := f.checked
	f.checked = true
	f.mu.Unlock()
	if done || len(v.owners) == 0 {
		return
	}
	id, err := f.store.Lstat(f.manifestPath())
	if s := f.loadManifestState(); s != nil && err == nil && s.id == id {
		return
	}
	if err := f.updateManifest(ctx, nil); err != nil && !errors.Is(err, state.ErrBusy) && !errors.Is(err, fs.ErrPermission) {
		f.warn(fmt.Sprintf("%s cannot be brought in step: %v", f.manifestPath(), err))
	}
}
