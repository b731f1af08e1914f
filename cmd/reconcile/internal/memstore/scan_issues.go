package memstore

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// parsing is memory.Parse or memory.ParseVerbatim.
type parsing func([]byte) (*schemas.MemoryFile, error)

// batches splits files by their sizes.
func batches(files []source) (out [][]source) {
	all := int64(0)
	for _, s := range files {
		all += s.id.Size
	}
	most := min(max(all/int64(runtime.GOMAXPROCS(0))+1, leastBatch), mostBatch)
	for from, i, size := 0, 0, int64(0); i < len(files); i++ {
		size += files[i].id.Size
		if size >= most || i == len(files)-1 {
			out = append(out, files[from:i+1])
			from, size = i+1, 0
		}
	}
	return out
}

// readIssues reads issue files and builds tables of the changed ones.
func (f *Files) readIssues(now time.Time, issues []source, known map[int]source, bare bool) ([]readFile, []*table, error) {
	work := batches(issues)
	all := make([]batch, len(work))
	var wg sync.WaitGroup
	next := make(chan int, len(work))
	for i := range work {
		next <- i
	}
	close(next)
	for range min(len(work), runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for i := range next {
				all[i] = f.readBatch(now, work[i], known, bare)
			}
		})
	}
	wg.Wait()
	var files []readFile
	var tables []*table
	var err error
	for _, b := range all {
		files, tables, err = append(files, b.files...), append(tables, b.tables...), errors.Join(err, b.err)
	}
	return files, tables, err
}

func (f *Files) readBatch(now time.Time, issues []source, known map[int]source, bare bool) (out batch) {
	names := make([]string, len(issues))
	for i, s := range issues {
		names[i] = issueName(s.issue)
	}
	b := tableBuilder{bare: bare}
	at := 0
	f.store.ReadFiles(f.dir(), fileLimit, names, func(_ string, data []byte, id state.Identity, err error) {
		s := source{issue: issues[at].issue, id: id}
		at++
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		r := readIssue(now, s, data, f.noFile(f.issuePath(s.issue), err), known)
		if r.file != nil && r.err == nil {
			b.addFile(r.source, r.file)
			r.file = nil
		}
		out.files = append(out.files, r)
	})
	out.tables, out.err = b.tables()
	return out
}

func stampOf(ms int64) schemas.Stamp { return schemas.StampOfTime(time.UnixMilli(ms)) }

func (f *Files) take(name string, data []byte, id state.Identity, err error) {
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	k := knownRecord{id: id}
	if err == nil {
		k.MemoryRecord, err = memory.ParseRecord(data)
	}
	if err != nil {
		k.damaged = err.Error()
		if was, ok := f.recordsRead[name]; !ok || was.damaged != k.damaged {
			f.warn(fmt.Sprintf("%s/%s.json cannot be read and counts for nothing: %v; restore it or remove it",
				f.recordsDir(), name, err))
		}
	}
	f.recordsRead[name] = k
}

// addWritten adds this process's writes to the view.
func (f *Files) addWritten(searched bool) (*memoryView, error) {
	seen := make(map[int]source, len(f.view.owners)+len(f.written))
	for issue, o := range f.view.owners {
		seen[issue] = o.source
	}
	b := tableBuilder{bare: f.bare(searched)}
	files := make([]readFile, 0, len(f.written))
	for _, issue := range slices.Sorted(maps.Keys(f.written)) {
		w := f.written[issue]
		m, err := memory.Parse(w.data)
		if err == nil {
			b.addFile(w.source, m)
		}
		files = append(files, readFile{w.source, m, err})
	}
	fresh, err := b.tables()
	if err != nil {
		return nil, err
	}
	return f.nextView(f.view.at, seen, files, fresh, searched)
}

// wrote records a write of an issue file for the view.
func (f *Files) wrote(issue int, data []byte) {
	id, err := f.store.Lstat(f.issuePath(issue))
	if err != nil {
		id = state.Identity{}
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.view == nil {
		return
	}
	if f.written == nil {
		f.written = map[int]wroteFile{}
	}
	f.written[issue] = wroteFile{source{issue: issue, id: id, hash: xxhash.Sum64(data), racy: true}, data}
}

// forgetView has the next view check all files.
func (f *Files) forgetView() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.view, f.written = nil, nil
}

// scan checks all issue files, and reads those that changed since the view or the cache.
func (f *Files) scan(searched bool) (*memoryView, error) {
	if searched && f.view != nil && f.view.set == nil {
		f.view = nil
	}
	if f.view == nil {
		f.loadTables(searched)
	}
	now := time.Now()
	known := f.known()
	seen := map[int]source{}
	var changed []source
	err := f.store.ListFolder(f.dir(), func(name []byte, id state.Identity) {
		issue, ok := issueOf(string(name))
		if !ok {
			return
		}
		if s, ok := known[issue]; ok && s.id == id && !s.racy {
			seen[issue] = s
		} else {
			changed = append(changed, source{issue: issue, id: id})
		}
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("look at the memory in %s: %w", f.dir(), err)
	}
	slices.SortFunc(changed, func(a, b source) int { return cmp.Compare(a.issue, b.issue) }) // equals are found in this order
	f.written = nil
	files, fresh, err := f.readIssues(now, changed, known, f.bare(searched))
	if err != nil {
		return nil, err
	}
	return f.nextView(now, seen, files, fresh, searched)
}

// known returns the known issue files, from the last view or the cache.
func (f *Files) known() map[int]source {
	known := map[int]source{}
	if f.view != nil {
		for issue, o := range f.view.owners {
			known[issue] = o.source
		}
		return known
	}
	for _, p := range f.tables {
		for _, s := range p.table.sources() {
			known[s.issue] = s
		}
	}
	return known
}

// warnOfBad warns of each unreadable file, once.
func (f *Files) warnOfBad(bad map[int]error) {
	for _, issue := range slices.Sorted(maps.Keys(bad)) {
		if f.warned == nil {
			f.warned = map[int]bool{}
		}
		if !f.warned[issue] {
			f.warned[issue] = true
			f.warn(fmt.Sprintf("%s cannot be read: %v; the others go on working, and the next run of reconcile moves it aside "+
				"and makes it anew", f.issuePath(issue), bad[issue]))
		}
	}
}
