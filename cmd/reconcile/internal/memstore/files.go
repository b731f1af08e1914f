package memstore

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/document"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors/lexical"
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
	view        *memoryView
	archiveView *memoryView       // the archives
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

func hashOf(parts [][]byte) uint64 {
	h := xxhash.New()
	for _, p := range parts {
		_, _ = h.Write(p) // never fails
	}
	return h.Sum64()
}

// Close closes the memory files: it saves the anchors, and frees the mapped views and tables of readers. No call may be
// in progress. The caller closes the state.Store.
func (f *Files) Close() error {
	f.dropping.Wait()
	f.anchors.save()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, free := range f.mapped {
		free()
	}
	f.view, f.archiveView, f.uncompacted, f.tables, f.mapped = nil, nil, nil, nil, nil
	return nil
}

// size returns the size of the store's files in bytes, without the records.
func (f *Files) size(v *memoryView) int64 {
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

// Open opens the memory Files of a store. It reads and writes nothing yet.
func Open(store *state.Store, o Options) *Files {
	f := &Files{store: store, o: o, encode: document.Spec, anchors: anchors{store: store, cached: !o.NoCache}}
	f.given = sync.OnceValue(func() *schemas.SettingsSpec {
		if o.Settings != nil {
			return o.Settings
		}
		return store.Settings()
	})
	return f
}

// StateFolder returns the configured folder of observed state.
func (f *Files) StateFolder() string { return f.settings().Folders.State }

func (f *Files) settings() *schemas.SettingsSpec { return f.given() }

// Written returns the number of writes of the memory files by this process: files that it wrote, moved aside or
// removed, without the counts of recalls.
func (f *Files) Written() int { return int(f.writes.Load()) }

func (f *Files) warn(text string) {
	if f.o.Warn != nil {
		f.o.Warn(text)
	}
}

func damagedCache(err error) bool {
	return errors.Is(err, errDamagedCache) || errors.Is(err, lexical.ErrDamaged)
}

// doing reports the progress of a long step over issues. It also renews the tree's lock, if held.
func (f *Files) doing(step string, done, total int) {
	f.store.Working(step)
	if f.o.Doing != nil {
		f.o.Doing(step, done, total)
	}
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
