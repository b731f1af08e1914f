package memstore

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors/lexical"
)

// readFile is the result of reading an issue file.
type readFile struct {
	source
	file *schemas.MemoryFile // nil if unchanged, unreadable, or in a table
	err  error
}

// Issue files are read in batches, on all processors, and each batch becomes a table at once, so that the decoded files
// need not stay in memory. These are the sizes of batches in bytes.
const (
	leastBatch = 512 << 10
	mostBatch  = 4 << 20
)

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

// batch is the result of reading some issue files.
type batch struct {
	files  []readFile
	tables []*table // one table, or none
	err    error
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

func readIssue(now time.Time, s source, data []byte, err error, known map[int]source) readFile {
	s.racy = s.id.Ctime > now.Add(-tick).UnixNano()
	if err != nil {
		return readFile{source: s, err: err}
	}
	s.hash = xxhash.Sum64(data)
	if k, ok := known[s.issue]; ok && k.hash == s.hash {
		return readFile{source: s}
	}
	m, err := memory.Parse(data)
	if err == nil && m.IssueNumber != s.issue {
		err = fmt.Errorf("%w: it says that it is about issue %d", memory.ErrDamaged, m.IssueNumber)
	}
	return readFile{s, m, err}
}

// tables returns a table of the added files, or none if there are none.
func (b *tableBuilder) tables() ([]*table, error) {
	if len(b.issues) == 0 {
		return nil, nil
	}
	t, err := b.table()
	return []*table{t}, err
}

// table returns a table of the added files, with its own lexical index unless it is bare.
func (b *tableBuilder) table() (*table, error) {
	if b.bare {
		return openTable(b.bytes(nil, 0))
	}
	lex, err := lexical.Build(b.docs)
	if err != nil {
		return nil, fmt.Errorf("index the memory: %w", err)
	}
	b.docs = nil
	return openTable(b.bytes(lex.Bytes(), 0))
}
