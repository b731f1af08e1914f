package state

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/lock"
	"reconcile.dev/reconcile/state/regular"
)

// Options configure a store. Kinds and Now must be set.
type Options struct {
	Kinds schemas.Kinds
	Now   func() time.Time
	// FileNow is the clock of the file system's timestamps, if Now is another clock.
	FileNow func() time.Time
	// Agent is the name in lock files.
	Agent string
	// Build identifies the program, including the checks of its kinds. Caches of another build are not used.
	Build string
	// Log receives every acquire and release of a lock, at debug level, with filePath, agent and durationMs. May be nil.
	Log *slog.Logger
	// NoCache disables reading and writing caches.
	NoCache bool
	// Bare says that the folder has only the settings, specs and state of the tree: declared outputs are not checked.
	Bare bool
	// Large is called if a load finds more than LargeTree files to read, or a quarter of that to decide, so that the
	// program can prepare for it. May be nil.
	Large func(files int)
	// DormantFrom is the number of files of dormant objects from which on LoadChanged skips them; 0: minDormantFiles.
	DormantFrom int
	// CleanFilter returns git's clean filter for the path of a file: a function from the content of the work tree to that
	// of the blob, so that inputs have the same digest in every checkout; nil if both are the same. May be nil.
	CleanFilter func(path string) func([]byte) []byte
	// CleanRules returns the source of the CleanFilter, except .gitattributes below the tree: a text that differs if the
	// filter may differ. It is called before each scan of all inputs; CleanFilter uses the rules of the last call. May be
	// nil.
	CleanRules func() string
}

// LargeTree is the number of files from which on a tree is large: some 12,000 objects.
const LargeTree = 20000

// Store is the handle of one process on a tree. It is safe for concurrent use.
type Store struct {
	root *os.Root
	dir  string
	opts Options

	mu        sync.Mutex // guards what follows
	settings  *schemas.SettingsSpec
	lay       atomic.Pointer[layout]
	decoder   *schemas.Decoder
	against   map[string]func(o, to *schemas.Object, r *schemas.Report) // by kind: the cached Kind.CheckAgainst
	model     *model                                                    // nil until the first Load
	seenGen   int64                                                     // the generation of model
	cache     *cache
	before    map[string]*file        // the files before the load by LoadChanged
	freshScan *freshScan              // the scan of Fresh; nil once it is used
	own       atomic.Pointer[Journal] // set under mu
	moved     []schemas.Ref           // objects whose damaged files were moved aside since the last scan
	locks     lock.Options            // of all locks, except Agent and Log; the zero value except in tests
	lost      map[string]bool         // keys of runs whose outputs this process could not restore
	forced    []schemas.Ref           // objects whose entries the next scan makes again
	listed    map[string]listedFolder // folders whose names were read, see newSpecs
	watch     *watch                  // reports changes; nil: no watch
	folded    map[int]*Ledger         // ledgers that this process wrote since the last scan, by issue

	held          atomic.Pointer[Lock]
	decodeBuffers sync.Pool // of *room
	shapes        func() *shapes

	needsFullLoad atomic.Bool // dormant objects were requested: the next load reads everything

	deferFrom int          // minDeferredRecords, except in tests
	decoded   atomic.Int64 // files decoded so far, for tests
}

// Open returns a store for the tree in dir, which must be an existing folder; an empty one is a tree without objects. It
// reads and writes nothing yet. The error wraps ErrFolder if the folder of local files is not a folder.
func Open(dir string, o Options) (*Store, error) {
	root, err := regular.Root(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("tree %s does not exist; make the folder, or point -C at another: %w", dir, err)
		}
		return nil, fmt.Errorf("tree %s: %w", dir, err)
	}
	if o.DormantFrom == 0 {
		o.DormantFrom = minDormantFiles
	}
	if o.FileNow == nil {
		o.FileNow = o.Now
	}
	s := &Store{root: root, dir: dir, opts: o, settings: new(schemas.SettingsSpec), against: checksAgainst(o.Kinds),
		lost: map[string]bool{}, shapes: shapesOf(o.Kinds), deferFrom: minDeferredRecords}
	s.settings.Default()
	s.decoder = schemas.DecoderFor(o.Kinds, s.settings)
	s.cache = newCache(s)
	if err := s.checkFolder(localDir, ""); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	return s, nil
}

func checksAgainst(kinds schemas.Kinds) map[string]func(o, to *schemas.Object, r *schemas.Report) {
	checks := map[string]func(o, to *schemas.Object, r *schemas.Report){}
	for _, k := range kinds {
		if k.CheckAgainst != nil {
			checks[k.Name] = k.CheckAgainst
		}
	}
	return checks
}

// Close closes the folder. Journals and locks must be closed before.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	s.cache.close()
	s.unwatch()
	return s.root.Close()
}

// Kinds returns the table of kinds of the store.
func (s *Store) Kinds() schemas.Kinds { return s.opts.Kinds }

// Root returns the tree's folder, for callers that read or write files outside the responsibility of this package.
func (s *Store) Root() *os.Root { return s.root }

// Dir returns the tree's folder as it was passed to Open.
func (s *Store) Dir() string { return s.dir }

// layout returns the folders of the tree: as of the last Load, or, before the first, by the current settings.
func (s *Store) layout() *layout {
	if l := s.lay.Load(); l != nil {
		return l
	}
	s.lay.CompareAndSwap(nil, s.layoutOf(s.readSettings().spec))
	return s.lay.Load()
}

func (s *Store) layoutOf(spec *schemas.SettingsSpec) *layout {
	return &layout{kinds: s.opts.Kinds, specs: spec.Folders.Specs, state: spec.Folders.State}
}

// sameDecoder reports whether both settings decode files in the same way.
func sameDecoder(a, b *schemas.SettingsSpec) bool {
	return a.Limits.FileSize == b.Limits.FileSize && a.Folders.State == b.Folders.State
}

// useSettings applies the settings for the tree itself.
func (s *Store) useSettings(spec *schemas.SettingsSpec) {
	if !sameDecoder(s.settings, spec) {
		s.decoder = schemas.DecoderFor(s.opts.Kinds, spec)
	}
	s.settings = spec
	s.lay.Store(s.layoutOf(spec))
}

// ensureLocal makes a folder for local files, with a .gitignore for all of them.
func (s *Store) ensureLocal(dir string) error {
	if err := s.root.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("make %s: %w", dir, err)
	}
	const ignore = localDir + "/.gitignore"
	if _, err := s.root.Lstat(ignore); !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err := s.root.MkdirAll(tmpDir, 0o755); err != nil {
		return fmt.Errorf("make %s: %w", tmpDir, err)
	}
	// Completely or not at all: an empty one would show everything to git.
	return durable.WriteFile(s.root, tmpDir, ignore, []byte("*\n"))
}

// Ignore makes git ignore the names that match the patterns in a folder of the tree, by a .gitignore there that also
// ignores itself: no commit has to hold it, and each clone makes its own. An existing .gitignore belongs to the user and
// stays unchanged: then wrote is false.
func (s *Store) Ignore(dir string, patterns ...string) (wrote bool, err error) {
	name := path.Join(dir, ".gitignore")
	if _, err := s.root.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if err := s.ensureLocal(tmpDir); err != nil {
		return false, err
	}
	text := strings.Join(append(patterns, ".gitignore"), "\n") + "\n"
	err = durable.WriteFile(s.root, tmpDir, name, []byte(text))
	return err == nil, err
}
