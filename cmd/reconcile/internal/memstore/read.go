package memstore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
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

// batch is the result of reading some issue files.
type batch struct {
	files  []readFile
	tables []*table // one table, or none
	err    error
}

// decode parses the file of an Observation. The error lists all problems, and is ErrInvalid.
func (f *Files) decode(path string, src []byte) (*schemas.Object, error) {
	f.decodeMu.Lock()
	defer f.decodeMu.Unlock()
	if f.decoder == nil {
		f.decoder = schemas.DecoderFor(f.o.Kinds, f.settings())
	}
	d := f.decoder.Decode(path, src)
	var wrong []string
	for _, p := range d.Problems {
		if p.Severity == schemas.Error {
			wrong = append(wrong, strings.TrimPrefix(p.Field, "spec.")+": "+p.Message)
		}
	}
	if len(wrong) > 0 || d.Object == nil {
		return nil, fmt.Errorf("%w: %s", ErrInvalid, strings.Join(wrong, "; "))
	}
	return d.Object, nil
}

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

// readIssue reads an issue file or an archive; a missing file is empty.
func (f *Files) readIssue(p string, issue int) (*schemas.MemoryFile, error) {
	return f.readWith(memory.Parse, p, issue)
}

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

// readOrNil reads a file of the memory; nil if it does not exist.
func (f *Files) readOrNil(p string) ([]byte, error) {
	data, _, err := f.store.ReadFile(p, fileLimit)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return data, f.noFile(p, err)
}

// noFile returns memory.ErrDamaged for an entry that is not a file, such as a link or a folder: it is moved aside like an
// unreadable file.
func (f *Files) noFile(p string, err error) error {
	if err == nil {
		return nil
	}
	if id, lost := f.store.Lstat(p); lost != nil || id.IsFile() {
		return err
	}
	return fmt.Errorf("%w: %w", memory.ErrDamaged, err)
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

// readEach reads files of one folder on all processors, each once, and calls fn for the readable ones, concurrently. The
// content is valid during the call.
func readEach[T any](f *Files, dir string, of []T, name func(T) string, fn func(of T, data []byte)) {
	var wg sync.WaitGroup
	var next atomic.Int64
	for range min(len(of), runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			folder, err := f.store.OpenFolder(dir)
			if err != nil {
				return
			}
			defer folder.Close()
			for i := int(next.Add(1)); i <= len(of); i = int(next.Add(1)) {
				if data, err := folder.Read(name(of[i-1]), fileLimit); err == nil {
					fn(of[i-1], data)
				}
			}
		})
	}
	wg.Wait()
}

// Stats implements [Store]. The statistics cover the issue files; archived observations are counted separately.
func (f *Files) Stats(ctx context.Context) (schemas.MemoryStats, error) {
	out := schemas.MemoryStats{ByCategory: map[string]int{}, ByAgent: map[string]int{}}
	v, err := f.current()
	if err != nil {
		return out, err
	}
	f.checkManifest(ctx, v)
	oldest, newest := int64(1<<62), int64(-1<<62)
	for _, issue := range v.issues() {
		if v.owners[issue].rows > 0 {
			out.IssueCount++
		}
	}
	v.each(func(at place, r row) bool {
		out.TotalObservations++
		out.TotalTokens += r.tokens
		out.ByCategory[v.category(at, r)]++
		out.ByAgent[v.agent(at, r)]++
		if r.superseded {
			out.Superseded++
		}
		oldest, newest = min(oldest, r.ms), max(newest, r.ms)
		return true
	})
	if out.TotalObservations > 0 {
		out.OldestTimestamp, out.NewestTimestamp = stampOf(oldest), stampOf(newest)
	}
	for issue := range f.archives() {
		if m, err := f.readIssue(f.archivePath(issue), issue); err == nil {
			out.Archived += len(m.Observations)
		}
	}
	records, err := f.recordNames()
	for _, id := range records {
		out.DiskBytes += id.Size
	}
	out.Recalls = f.recallCount(records)
	out.DiskBytes += f.size(v)
	return out, errors.Join(err, ctx.Err())
}

// all returns the observations of these ids, by issue; ErrUnknown if one does not exist.
func (f *Files) all(ctx context.Context, ids []string) (map[int][]schemas.Observation, error) {
	byIssue, err := issuesOf(ids)
	if err != nil {
		return nil, err
	}
	out := map[int][]schemas.Observation{}
	for issue, ids := range byIssue {
		slices.Sort(ids)
		for _, id := range slices.Compact(ids) {
			o, err := f.ByID(ctx, id)
			if err != nil {
				return nil, err
			}
			out[issue] = append(out[issue], o)
		}
	}
	return out, nil
}
