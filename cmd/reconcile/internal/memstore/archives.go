package memstore

import (
	"maps"
	"slices"
	"time"

	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors/lexical"
)

// archived is a view of the archives. It is made anew when any of them changed.
func (f *Files) archived() (*view, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	ids := f.archives()
	if f.put != nil && f.put.holds(ids) {
		return f.put, nil
	}
	if t := f.putTable(); t != nil {
		v, err := newView(f.o.Now(), []part{{table: t}}, sourcesOf(t))
		if err == nil && v.holds(ids) {
			f.put = v
			return v, nil
		}
	}
	v, err := f.readArchives(ids)
	if err == nil {
		f.put = v
	}
	return v, err
}

// putTable is the table of archives in the cache, nil if there is none that can be searched.
func (f *Files) putTable() *table {
	if f.o.NoCache {
		return nil
	}
	t := f.openTable(putPath)
	if t == nil || t.lex == nil {
		return nil
	}
	return t
}

func (f *Files) readArchives(ids map[int]state.Identity) (*view, error) {
	var b tableBuilder
	whole, now := true, time.Now()
	for _, issue := range slices.Sorted(maps.Keys(ids)) {
		m, err := f.readIssue(f.archivePath(issue), issue)
		if err != nil {
			f.warn(err.Error())
			whole = false
			continue
		}
		b.add(source{issue: issue, id: ids[issue], racy: ids[issue].Ctime > now.Add(-tick).UnixNano()}, m)
	}
	t, err := b.table()
	if err != nil {
		return nil, err
	}
	if whole && !f.o.NoCache && t.len() > slack {
		_ = f.store.Replace(putPath, t.data)
	}
	return newView(f.o.Now(), []part{{table: t}}, sourcesOf(t))
}

func sourcesOf(t *table) map[int]source {
	out := map[int]source{}
	for _, s := range t.sources() {
		out[s.issue] = s
	}
	return out
}

// holds reports whether a view is that of these very files.
func (v *view) holds(ids map[int]state.Identity) bool {
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

// united is the memory as it was before it was compacted: what compaction merged is found in its originals, which are in
// the archives.
type united struct {
	live, put *view
	set       *lexical.Set
	split     int // the number of the first document that is in the archives
}

// unite unites the issue files with the archives. Originals count as long as what they were merged into stands: what was
// removed or replaced since is not found in them either.
func (f *Files) unite(live, put *view) (*united, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if u := f.united; u != nil && u.live == live && u.put == put {
		return u, nil
	}
	at, err := put.places()
	if err != nil {
		return nil, err
	}
	all := segments(live.parts)
	stands := lexical.Bitmap{}
	for i := range live.parts {
		p := &live.parts[i]
		all[i].Deleted = slices.Clone(p.dead)
		for n := range p.len() {
			r := p.row(n)
			if !r.merged || r.superseded || p.dead.Has(n) {
				continue
			}
			b, err := p.blob(&r)
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
	u := &united{live: live, put: put}
	for _, s := range all {
		u.split += s.Index.Docs()
	}
	for _, s := range segments(put.parts) {
		for doc := range s.Index.Docs() {
			if !stands.Has(doc) {
				s.Deleted.Add(doc)
			}
		}
		all = append(all, s)
	}
	u.set, err = lexical.NewSet(all...)
	f.united = u
	return u, err
}

// places are the rows of a view of one table, by id.
func (v *view) places() (map[string]int, error) {
	out := map[string]int{}
	for i := range v.parts {
		p := &v.parts[i]
		for n := range p.len() {
			r := p.row(n)
			id, err := p.id(&r)
			if err != nil {
				return nil, err
			}
			out[id] = n
		}
	}
	return out, nil
}

func hasAll(places map[string]int, ids []string) bool {
	return !slices.ContainsFunc(ids, func(id string) bool { _, ok := places[id]; return !ok })
}

// search finds what passes the filter of both.
func (u *united) search(live, put *asked, text string, limit int) ([]Row, error) {
	of := func(doc int) (*asked, place) {
		if doc < u.split {
			return live, u.live.find(doc)
		}
		return put, u.put.find(doc - u.split)
	}
	hits, err := u.set.Search(text, limit, func(doc int) bool {
		a, at := of(doc)
		return a.passes(at, a.v.row(at))
	})
	if err != nil {
		return nil, err
	}
	out := make([]Row, len(hits))
	for i, h := range hits {
		a, at := of(h.Doc)
		kept, err := a.v.parts[at.part].shown(at.row)
		if err != nil {
			return nil, err
		}
		out[i] = kept.row
		out[i].Score, out[i].Stale, out[i].Archived = float64(h.Score), a.staleNow(kept), h.Doc >= u.split
	}
	return out, nil
}
