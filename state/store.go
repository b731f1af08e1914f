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

// Options say how a store works. Kinds and Now must be set.
type Options struct {
	Kinds schemas.Kinds
	Now   func() time.Time
	// FileNow is the clock that the file system stamps changes with, if Now is another.
	FileNow func() time.Time
	// Agent is the name that stands in lock files.
	Agent string
	// Build identifies the program, with the checks of its kinds. Caches of another build are not used.
	Build string
	// Log is told of every acquire and release of a lock, at debug level, with filePath, agent and durationMs. May be nil.
	Log *slog.Logger
	// NoCache neither reads nor writes caches.
	NoCache bool
	// Bare says that the folder has nothing of the tree but settings, specs and state: declared outputs are not looked for.
	Bare bool
	// Large is called when a load finds more than LargeTree files of which all is read, or a quarter of that of which all is
	// to be decided, so that the program can prepare for it. May be nil.
	Large func(files int)
	// DormantFrom is from how many files of dormant objects on LoadChanged leaves them; 0: some thousand.
	DormantFrom int
	// Stored returns what turns the bytes of a file, by its path, into what version control stores, so that inputs have
	// the same digest however they are checked out; nil where they are the same. May be nil.
	Stored func(path string) func([]byte) []byte
	// StoredBy returns what Stored follows from, but for .gitattributes below the tree: a text that differs when Stored may.
	// It is asked before each look at all inputs; Stored answers by what held then. May be nil.
	StoredBy func() string
}

// LargeTree is how many files make a tree large: some 12,000 objects.
const LargeTree = 20000

// Store is one process's hold on a tree. Its methods may be called from several goroutines.
type Store struct {
	root *os.Root
	dir  string
	opts Options

	mu       sync.Mutex // guards what follows
	settings *schemas.SettingsSpec
	lay      atomic.Pointer[layout]
	decoder  *schemas.Decoder
	against  map[string]func(o, to *schemas.Object, r *schemas.Report) // by kind: what Kind.CheckAgainst says
	model    *model                                                    // nil until the first Load
	seenGen  int64                                                     // the generation that model knows of
	cache    *cache
	before   map[string]*file        // what was known before the load that LoadChanged does
	first    *glance                 // what Fresh saw; nil once it is used
	own      atomic.Pointer[Journal] // set under mu
	moved    []schemas.Ref           // objects whose damaged files were moved aside since the last look
	locks    lock.Options            // of all locks, but for Agent and Log; the zero value but in tests
	lost     map[string]bool         // keys of runs whose outputs this process could not restore
	forced   []schemas.Ref           // objects whose entries are to be made anew at the next look
	listed   map[string]listed       // folders whose names were read, see newcomers
	watch    *watch                  // tells what changes; nil: nobody does
	folded   map[int]*Ledger         // what this process wrote into ledgers since the last look, by issue

	held   atomic.Pointer[Lock]
	rooms  sync.Pool // of *room
	shapes func() *shapes

	roused atomic.Bool // somebody asked for dormant objects: everything is to be loaded

	leaveFrom int          // leaveRecords, but in tests
	decoded   atomic.Int64 // files decoded so far, for tests
}

// Open returns a store for the tree in dir, which must be an existing folder; an empty one is a tree without objects.
// Nothing is read or written yet. The error wraps ErrFolder where something else stands in place of the folder of local files.
func Open(dir string, o Options) (*Store, error) {
	root, err := regular.Root(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("tree %s does not exist; make the folder, or point -C at another: %w", dir, err)
		}
		return nil, fmt.Errorf("tree %s: %w", dir, err)
	}
	if o.DormantFrom == 0 {
		o.DormantFrom = manyDormant
	}
	if o.FileNow == nil {
		o.FileNow = o.Now
	}
	s := &Store{root: root, dir: dir, opts: o, settings: new(schemas.SettingsSpec), against: checksAgainst(o.Kinds),
		lost: map[string]bool{}, shapes: shapesOf(o.Kinds), leaveFrom: leaveRecords}
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

// Close gives up the folder. A journal and a lock are closed by themselves, before.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache.mu.Lock()
	defer s.cache.mu.Unlock()
	s.cache.close()
	s.unwatch()
	return s.root.Close()
}

// Kinds is the table of kinds that the store reads with.
func (s *Store) Kinds() schemas.Kinds { return s.opts.Kinds }

// Root is the tree's folder, for those who read or write files of it that are not this package's matter.
func (s *Store) Root() *os.Root { return s.root }

// Dir is the tree's folder as it was given to Open.
func (s *Store) Dir() string { return s.dir }

// layout tells the folders of the tree: as of the last Load, or, before the first, as the settings have them now.
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

// sameDecoder reports whether files are read alike under both settings.
func sameDecoder(a, b *schemas.SettingsSpec) bool {
	return a.Limits.FileSize == b.Limits.FileSize && a.Folders.State == b.Folders.State
}

// useSettings takes over what the settings say about the tree itself.
func (s *Store) useSettings(spec *schemas.SettingsSpec) {
	if !sameDecoder(s.settings, spec) {
		s.decoder = schemas.DecoderFor(s.opts.Kinds, spec)
	}
	s.settings = spec
	s.lay.Store(s.layoutOf(spec))
}

// ensureLocal makes a folder for local files, all of which git is told to ignore.
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
	// Whole or not at all: an empty one would show git everything.
	return durable.WriteFile(s.root, tmpDir, ignore, []byte("*\n"))
}

// Ignore has git ignore what the patterns name in a folder of the tree, by a .gitignore there that ignores itself, too: no
// commit has to hold it, and each clone makes its own. A .gitignore that is there is the user's and stays as it is: then
// wrote is false.
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
