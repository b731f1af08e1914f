package memstore

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/document"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors/lexical"
)

// Options say how a store works. Now and Kinds must be set.
type Options struct {
	Now func() time.Time
	// Kinds are those of the program.
	Kinds schemas.Kinds
	// Warn is told what a person should know and no error is. May be nil.
	Warn func(string)
	// Doing is told what is being done and how many issues of it are done, again and again while it goes on. May be nil.
	Doing func(step string, done, total int)
	// Settings are those of the tree; read from it if nil.
	Settings *schemas.SettingsSpec
	// NoCache neither reads nor writes caches.
	NoCache bool
}

// Files is the memory of a tree, in files: see the package comment. Several processes may work on it at once.
type Files struct {
	store   *state.Store
	o       Options
	given   func() *schemas.SettingsSpec
	anchors anchors
	shares  shares
	encode  func(schemas.Ref, schemas.Spec) ([]byte, error) // a spec as a file

	candidateRoom sync.Pool // of *[]memory.Candidate, for the index phase of a recall

	mu      sync.Mutex // guards what follows
	view    *view
	put     *view             // the archives
	united  *united           // both
	tables  []part            // what the next view is made of while there is none
	written map[int]wroteFile // issue files that this process wrote and the view has not
	mapped  []func()          // end the mapping of files of the cache
	warned  map[int]bool      // issue files that were told of
	checked bool              // the manifest was looked at

	manifestMu sync.Mutex             // held while this process changes the manifest, so that its goroutines wait here
	drafting   sync.Mutex             // held while there is a draft of it
	dropping   sync.WaitGroup         // removes drafts, and manifests that others took the place of
	room       atomic.Pointer[[]byte] // for reading it; see takeRoom

	writes atomic.Int64 // files of the memory that were written

	recordsMu   sync.Mutex
	recordsRead map[string]knownRecord

	decodeMu sync.Mutex
	decoder  *schemas.Decoder
}

var _ Store = (*Files)(nil)

// Open returns the memory of a tree. Nothing is read or written yet.
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

// Save keeps what is known of anchors for the next process; Close does, too.
func (f *Files) Save() { f.anchors.save() }

// Close gives up what reading needs; nothing else may be going on. The state.Store is closed by who opened it.
func (f *Files) Close() error {
	f.dropping.Wait()
	f.anchors.save()
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, free := range f.mapped {
		free()
	}
	f.view, f.put, f.united, f.tables, f.mapped = nil, nil, nil, nil, nil
	return nil
}

// Written counts the files below the folder of the memory that this process wrote, moved aside or removed, but for the
// counts of recalls.
func (f *Files) Written() int { return int(f.writes.Load()) }

func (f *Files) settings() *schemas.SettingsSpec { return f.given() }

func (f *Files) warn(text string) {
	if f.o.Warn != nil {
		f.o.Warn(text)
	}
}

func damagedCache(err error) bool {
	return errors.Is(err, errDamagedCache) || errors.Is(err, lexical.ErrDamaged)
}
