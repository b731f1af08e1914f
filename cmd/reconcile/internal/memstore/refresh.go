package memstore

import (
	"fmt"
	"slices"
	"time"
)

// cacheFor is how long a view is valid without a check of the disk (agentx-spec, memory pipeline 7.2). It includes this
// process's writes at once.
const cacheFor = 30 * time.Second

// tick is an upper bound of the resolution of file times: kernels stamp files with a clock that advances every 1 to 10 ms.
const tick = 20 * time.Millisecond

// When tables are merged and cached.
const (
	slack     = 256 // up to this many observations are not cached but read and indexed again
	tailShare = 20  // the base is rebuilt when a twentieth of it is dead or in other tables
	mostParts = 6
)

// current returns the view for searching, checked no longer than cacheFor ago.
func (f *Files) current() (*memoryView, error) { return f.recent(true) }

// recent is current; searched is set if the view must be searchable.
func (f *Files) recent(searched bool) (*memoryView, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.view == nil || time.Since(f.view.at) >= cacheFor || searched && f.view.set == nil {
		return f.scan(searched)
	}
	if len(f.written) > 0 {
		return f.addWritten(searched)
	}
	return f.view, nil
}

// latest returns the view of the present files. It may not be searchable.
func (f *Files) latest() (*memoryView, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.scan(false)
}

// bare reports whether new tables are bare: if the caller does not search, unless the present tables are searchable.
func (f *Files) bare(searched bool) bool {
	tables := f.tables
	if f.view != nil {
		tables = f.view.parts
	}
	return !searched && (len(tables) == 0 || anyBare(tables))
}

// wroteFile is an issue file as this process wrote it. It is parsed when a view is requested; a process that only captures
// never needs it.
type wroteFile struct {
	source
	data []byte
}

// nextView builds the next view from the read files and their tables. For an unreadable file, its last known rows stay.
func (f *Files) nextView(at time.Time, seen map[int]source, files []readFile, fresh []*table, searched bool) (*memoryView, error) {
	bad := map[int]error{}
	known := f.known()
	for _, r := range files {
		if r.err == nil {
			seen[r.issue] = r.source
			continue
		}
		bad[r.issue] = r.err
		if s, ok := known[r.issue]; ok {
			s.racy = true
			seen[r.issue] = s
		}
	}
	if f.view != nil {
		f.tables = f.view.parts
	}
	tables := slices.Clip(f.tables)
	for _, t := range fresh {
		tables = append(tables, part{table: t})
	}
	v, err := newView(at, tables, seen)
	if err == nil {
		v, err = f.mergeTables(v, seen, len(f.tables) == 0 && len(fresh) > 1)
	}
	if damagedCache(err) {
		return f.startOver(searched)
	}
	if err != nil {
		return nil, err
	}
	f.warnOfBad(bad)
	v.bad = bad
	f.view, f.tables, f.written = v, nil, nil
	return v, nil
}

// startOver drops a damaged cache and reads everything.
func (f *Files) startOver(searched bool) (*memoryView, error) {
	if f.o.NoCache {
		return nil, fmt.Errorf("%w, though it was just made", errDamagedCache)
	}
	again := f.o
	f.o.NoCache = true
	f.view, f.tables, f.written = nil, nil, nil
	v, err := f.scan(searched)
	f.o = again
	if err == nil {
		f.save(v)
	}
	return v, err
}

// mergeTables merges tables that are too many or too small, or all of them, and caches those that are slow to rebuild.
func (f *Files) mergeTables(v *memoryView, seen map[int]source, all bool) (*memoryView, error) {
	if len(v.parts) == 0 {
		return v, nil
	}
	base, tail, unsaved := &v.parts[0], 0, 0
	for _, p := range v.parts[1:] {
		tail += p.table.len()
		if !p.saved {
			unsaved += p.table.len()
		}
	}
	parts := v.parts
	switch {
	case all, (tail+base.table.len()-base.live)*tailShare > base.table.len()+slack*tailShare || base.table.len() == 0 && tail > 0:
		t, err := v.merge(0, 0)
		if err != nil {
			return nil, err
		}
		parts = []part{{table: t}}
	case len(parts) > mostParts || unsaved > slack:
		t, err := v.merge(1, base.table.key())
		if err != nil {
			return nil, err
		}
		parts = []part{*base, {table: t}}
	default:
		f.save(v)
		return v, nil
	}
	at := v.at
	v, err := newView(at, parts, seen)
	if err == nil {
		f.save(v)
	}
	return v, err
}

// save caches tables. If that fails, the next process reads the files again.
func (f *Files) save(v *memoryView) {
	if f.o.NoCache {
		return
	}
	for i, path := range []string{basePath, deltaPath} {
		if i >= len(v.parts) || v.parts[i].saved || v.parts[i].table.len() <= slack {
			continue
		}
		if i == 1 && (!v.parts[0].saved || v.parts[1].table.basis() != v.parts[0].table.key()) {
			continue
		}
		v.parts[i].saved = f.store.Replace(path, v.parts[i].table.file.Bytes()) == nil
	}
}

// loadTables opens matching tables of the cache; for searching only searchable ones.
func (f *Files) loadTables(searched bool) {
	f.tables = nil
	if f.o.NoCache {
		return
	}
	base := f.openTable(basePath)
	if base == nil || base.basis() != 0 || searched && base.lex == nil {
		return
	}
	f.tables = append(f.tables, part{table: base, saved: true})
	if delta := f.openTable(deltaPath); delta != nil && delta.basis() == base.key() && (!searched || delta.lex != nil) {
		f.tables = append(f.tables, part{table: delta, saved: true})
	}
}

func (f *Files) openTable(path string) *table {
	data, free, err := f.store.Map(path)
	if err != nil {
		return nil
	}
	t, err := openTable(data)
	if err != nil {
		free()
		return nil
	}
	f.mapped = append(f.mapped, free)
	return t
}
