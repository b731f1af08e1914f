package memstore

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors/lexical"
)

// archived returns a view of the archives. It is rebuilt when any of them changed.
func (f *Files) archived() (*memoryView, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	ids := f.archives()
	if f.archiveView != nil && f.archiveView.holds(ids) {
		return f.archiveView, nil
	}
	if t := f.archiveTable(); t != nil {
		v, err := newView(f.o.Now(), []part{{table: t}}, sourcesOf(t))
		if err == nil && v.holds(ids) {
			f.archiveView = v
			return v, nil
		}
	}
	v, err := f.readArchives(ids)
	if err == nil {
		f.archiveView = v
	}
	return v, err
}

// archiveTable returns the table of archives in the cache, or nil if no searchable one exists.
func (f *Files) archiveTable() *table {
	if f.o.NoCache {
		return nil
	}
	t := f.openTable(archivesPath)
	if t == nil || t.lex == nil {
		return nil
	}
	return t
}

func (f *Files) readArchives(ids map[int]state.Identity) (*memoryView, error) {
	var b tableBuilder
	whole, now := true, time.Now()
	for _, issue := range slices.Sorted(maps.Keys(ids)) {
		m, err := f.readIssue(f.archivePath(issue), issue)
		if err != nil {
			f.warn(err.Error())
			whole = false
			continue
		}
		b.addFile(source{issue: issue, id: ids[issue], racy: ids[issue].Ctime > now.Add(-tick).UnixNano()}, m)
	}
	t, err := b.table()
	if err != nil {
		return nil, err
	}
	if whole && !f.o.NoCache && t.len() > slack {
		_ = f.store.Replace(archivesPath, t.file.Bytes())
	}
	return newView(f.o.Now(), []part{{table: t}}, sourcesOf(t))
}

// uncompacted is the memory as it was before compaction: merged observations are replaced by their originals from the
// archives.
type uncompacted struct {
	live, archive *memoryView
	set           *lexical.Set
	split         int // number of the first document of the archives
}

// uncompact joins the issue files with the archives. Originals count while the observation that they were merged into
// exists; if it was removed or replaced, they are not found either.
func (f *Files) uncompact(live, put *memoryView) (*uncompacted, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if u := f.uncompacted; u != nil && u.live == live && u.archive == put {
		return u, nil
	}
	at, err := put.places()
	if err != nil {
		return nil, err
	}
	all := wordSegments(live.parts)
	stands := lexical.Bitmap{}
	for i := range live.parts {
		p := &live.parts[i]
		all[i].Deleted = slices.Clone(p.dead)
		for n := range p.table.len() {
			r := p.table.row(n)
			if !r.merged || r.superseded || p.dead.Has(n) {
				continue
			}
			b, err := p.table.blob(&r)
			if err != nil {
				return nil, err
			}
			if !hasAll(at, b.compacts) {
				continue
			}
			all[i].Deleted.Add(n)
			for _, id := range b.compacts {
				stands.Add(at[id])
			}
		}
	}
	u := &uncompacted{live: live, archive: put}
	for _, s := range all {
		u.split += s.Index.Docs()
	}
	for _, s := range wordSegments(put.parts) {
		for doc := range s.Index.Docs() {
			if !stands.Has(doc) {
				s.Deleted.Add(doc)
			}
		}
		all = append(all, s)
	}
	u.set, err = lexical.NewSet(all...)
	f.uncompacted = u
	return u, err
}

// search returns the matches of both filters.
func (u *uncompacted) search(live, put *rowFilter, text string, limit int) ([]Row, error) {
	of := func(doc int) (*rowFilter, place) {
		if doc < u.split {
			return live, u.live.find(doc)
		}
		return put, u.archive.find(doc - u.split)
	}
	hits, err := u.set.Search(text, limit, func(doc int) bool {
		a, at := of(doc)
		return a.matches(at, a.v.row(at))
	})
	if err != nil {
		return nil, err
	}
	out := make([]Row, len(hits))
	for i, h := range hits {
		a, at := of(h.Doc)
		kept, err := a.v.parts[at.part].table.shown(at.row)
		if err != nil {
			return nil, err
		}
		out[i] = kept.row
		out[i].Score, out[i].Stale, out[i].Archived = float64(h.Score), a.staleNow(kept), h.Doc >= u.split
	}
	return out, nil
}

// WithOriginals replaces merged observations in ids by their originals, which it also returns. An observation whose
// originals are all removed disappears, and its id may be reused in its group.
func (f *Files) WithOriginals(ctx context.Context, ids []string) (gone, originals []string, err error) {
	for _, id := range ids {
		o, err := f.ByID(ctx, id)
		if err != nil {
			return nil, nil, err
		}
		derived := false
		for _, original := range o.Compacts {
			_, err := f.ByID(ctx, original)
			if err != nil && !errors.Is(err, ErrUnknown) {
				return nil, nil, err
			}
			derived = derived || err == nil
			if err == nil && !slices.Contains(slices.Concat(ids, originals), original) {
				originals = append(originals, original)
			}
		}
		if !derived {
			gone = append(gone, id)
		}
	}
	return append(gone, originals...), originals, nil
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

// archives returns the existing archives.
func (f *Files) archives() map[int]state.Identity {
	out := map[int]state.Identity{}
	_ = f.store.ListFolder(f.archiveDir(), func(name []byte, id state.Identity) {
		stem, ok := strings.CutSuffix(string(name), "-archived.json")
		if issue, is := issueOf(stem + ".json"); ok && is {
			out[issue] = id
		}
	}) // a missing folder has none
	return out
}
