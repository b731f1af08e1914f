package memstore

import (
	"errors"
	"fmt"
	"io/fs"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Options configure a store. Now and Kinds are required.
type Options struct {
	Now func() time.Time
	// Kinds are the program's kinds.
	Kinds schemas.Kinds
	// Warn is called with warnings for people. May be nil.
	Warn func(string)
	// Doing is called repeatedly during a long step with the number of finished issues. May be nil.
	Doing func(step string, done, total int)
	// Settings are the tree's settings; if nil, they are read from the tree.
	Settings *schemas.SettingsSpec
	// NoCache neither reads nor writes caches.
	NoCache bool
}

// Files is the memory of a tree, in files: see the package comment. Several processes may use it at once.
type Files struct {
	store   *state.Store
	o       Options
	given   func() *schemas.SettingsSpec
	anchors anchors
	shares  shares
	encode  func(schemas.Ref, schemas.Spec) ([]byte, error) // encodes a spec as a file

	candidateRoom sync.Pool // of *[]memory.Candidate, for the index phase of a recall

	mu          sync.Mutex // guards the fields below
	view        *view
	archiveView *view             // the archives
	uncompacted *uncompacted      // both
	tables      []part            // tables for the next view while there is none
	written     map[int]wroteFile // issue files that this process wrote and the view lacks
	mapped      []func()          // unmap files of the cache
	warned      map[int]bool      // issue files that were warned about
	checked     bool              // the manifest was checked

	manifestMu  sync.Mutex             // held while this process changes the manifest, so that its goroutines wait here
	speculating sync.Mutex             // held during a speculation
	dropping    sync.WaitGroup         // removes temporary and replaced manifests
	room        atomic.Pointer[[]byte] // buffer to read it; see takeRoom

	writes atomic.Int64 // number of written files of the memory

	recordsMu   sync.Mutex
	recordsRead map[string]knownRecord

	decodeMu sync.Mutex
	decoder  *schemas.Decoder
}

var _ Store = (*Files)(nil)

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

func hashOf(parts [][]byte) uint64 {
	h := xxhash.New()
	for _, p := range parts {
		_, _ = h.Write(p) // never fails
	}
	return h.Sum64()
}

func issueName(issue int) string { return "issue-" + strconv.Itoa(issue) + ".json" }

// issueOf returns the number in the name of an issue file; ok is false for other names.
func issueOf(name string) (issue int, ok bool) {
	digits, ok := strings.CutPrefix(strings.TrimSuffix(name, ".json"), "issue-")
	n, err := strconv.ParseInt(digits, 10, 32)
	return int(n), ok && err == nil && n >= 0 && issueName(int(n)) == name
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

// size returns the size of the store's files in bytes, without the records.
func (f *Files) size(v *view) int64 {
	var n int64
	for _, o := range v.owners {
		n += o.id.Size
	}
	for _, id := range f.archives() {
		n += id.Size
	}
	if id, err := f.store.Lstat(f.manifestPath()); err == nil {
		n += id.Size
	}
	return n
}
