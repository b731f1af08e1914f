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

// ByID implements [Store]: it reads the one issue file that the id names, and its archive if need be.
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

// readIssue reads an issue file or an archive; one that does not exist is empty.
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

// Each calls fn for every observation, in full, by issue and in the order of its file, those of the archive after the
// others of their issue, until fn returns an error, which it returns. Files that cannot be read are passed over. It is
// for those who examine the memory: observations of other programs are as they stand, with any secret that is in them.
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

// asked is a filter with what it needs to judge rows of one view.
type asked struct {
	*Files
	filter       Filter
	v            *view
	since, until int64 // milliseconds; until is 0 for no bound
	now          *moment
}

func (f *Files) ask(v *view, filter Filter, now *moment) *asked {
	a := &asked{filter: filter, Files: f, v: v, now: now, since: -1 << 62}
	if !filter.Since.IsZero() {
		a.since = filter.Since.UnixMilli()
	}
	if !filter.Until.IsZero() {
		a.until = filter.Until.UnixMilli()
	}
	return a
}

// passes reports whether a row is wanted.
func (a *asked) passes(at place, r row) bool {
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

// why says why a row may be stale.
func (a *asked) why(at place, r row) string {
	b, err := a.v.parts[at.part].blob(&r)
	if err != nil {
		return ""
	}
	return a.stale(b.anchors, a.now)
}

// tell makes the row that people and programs get.
func (a *asked) tell(at place, r row) (Row, error) {
	t := a.v.parts[at.part].table
	b, err := t.blob(&r)
	if err != nil {
		return Row{}, err
	}
	out := t.told(&r, &b)
	out.Stale = a.stale(b.anchors, a.now)
	return out, nil
}

// List implements [Store].
func (f *Files) List(ctx context.Context, filter Filter) ([]Row, error) {
	if err := checkFilter(filter); err != nil {
		return nil, err
	}
	var rows []Row
	err := f.over(ctx, filter, new(moment), func(a *asked, archived bool) error {
		found, err := a.list(archived)
		if err == nil {
			rows = append(rows, found...)
		}
		return err
	})
	slices.SortStableFunc(rows, func(a, b Row) int { return a.IssueNumber - b.IssueNumber })
	return rows, err
}

func (a *asked) list(archived bool) (rows []Row, err error) {
	a.v.each(func(at place, r row) bool {
		if !a.passes(at, r) {
			return true
		}
		var told Row
		told, err = a.tell(at, r)
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

// over calls fn for the views that a filter asks for: the issue files, the archives. Files that observations are about
// are as they are at the moment now.
func (f *Files) over(ctx context.Context, filter Filter, now *moment, fn func(a *asked, archived bool) error) error {
	if filter.Archived != Only {
		err := f.again(func() error {
			v, err := f.current()
			if err != nil {
				return err
			}
			f.checkManifest(ctx, v)
			return fn(f.ask(v, filter, now), false)
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
		err = fn(f.ask(v, filter, now), true)
	}
	return errors.Join(err, ctx.Err())
}

// again calls fn, and calls it once more, with a view that was made without the cache, if that is damaged.
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

// checkManifest brings the manifest in step when it is not as this program left it: nothing here is read from it, but
// other programs do so. It is looked at once.
func (f *Files) checkManifest(ctx context.Context, v *view) {
	f.mu.Lock()
	done := f.checked
	f.checked = true
	f.mu.Unlock()
	if done || len(v.owners) == 0 {
		return
	}
	id, err := f.store.LookAt(f.manifestPath())
	if s := f.loadStep(); s != nil && err == nil && s.id == id {
		return
	}
	if err := f.keepInStep(ctx, nil); err != nil && !errors.Is(err, state.ErrBusy) && !errors.Is(err, fs.ErrPermission) {
		f.warn(fmt.Sprintf("%s cannot be brought in step: %v", f.manifestPath(), err))
	}
}
