// Package state is the tree on disk: it loads specs, statuses and records into an immutable [Tree], and writes
// decisions back, durably.
//
// A [Store] is the handle of one process on a directory. Loading never takes a lock: files are replaced by rename, so
// a reader sees the old or the new content, never a mixture. All decisions and writes happen under [Store.Lock], the
// lock of the whole tree, which is held for milliseconds; effects run outside it, under a lease per key. Files that
// third-party programs also write are changed by [Store.Fold], under the AgentX lock file protocol (package
// state/lock). Of these, the ledgers of clarifications are part of the tree ([Tree.Ledger]): decisions read the records
// of other programs there.
//
// # Loading
//
// [Store.Load] scans all files, [Store.Refresh] some; both lead to the same tree. An unchanged file is decoded only
// once: it is recognized by its stat (size, times, inode, mode), and its decoded content is kept in memory and, for the
// next process, in .reconcile/cache. A file that was changed less than a tick of the file system's clock before it was
// read may change again with the same stat; it is marked as racy, and the next load compares its content. A file that
// cannot be read, or is not a regular file of the tree, is a separate problem and hides no other file.
//
// [Store.Settle] records a fingerprint of all files that a run depends on, and [Store.Fresh] compares it: a run with
// nothing to do costs one walk with a stat for each file.
//
// # Journals
//
// The files under .reconcile/ are local and disposable, with one exception: the journals, which hold results that
// are not yet files under state/runs. Each process has its own, and holds a lock on it during its lifetime. The results
// are checkpointed into files at the end of a run; after a kill the next run does that ([Store.Recover]).
//
// A result moves from a journal to a file in this order: write the file, raise the generation, drop the line. A reader
// uses the reverse order: journals, generation, files. So no reader misses a result in between, which would run an
// effect again. Each write by a reconcile process raises the generation; if it is not the one that a store knows,
// Refresh scans everything.
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

	"github.com/gofrs/flock"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/sections"
	"reconcile.dev/reconcile/state/disk"
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/lock"
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
	// NoInputs says that the inputs of nodes are not looked at: a tree has none. For a caller that decides nothing.
	NoInputs bool
	// Large is called if a load finds more than largeTree files to read, or a quarter of that to decide, so that the
	// program can prepare for it. May be nil.
	Large func(files int)
	// DormantFrom is the number of files of dormant objects from which on LoadChanged skips them; 0: minDormantFiles.
	DormantFrom int
	// Cleaner makes inputs have the same digest in every checkout; nil: their content is used as it is.
	Cleaner Cleaner
}

// Cleaner knows git's clean filters. It is safe for concurrent use.
type Cleaner interface {
	// Filter returns the clean filter for the path of a file: a function from the content of the work tree to that of the
	// blob; nil if both are the same. It uses the rules of the last call of Rules.
	Filter(path string) func([]byte) []byte
	// Rules returns the source of the filters, except .gitattributes below the tree: a text that differs if a filter may
	// differ. It is called before each scan of all inputs.
	Rules() string
}

// largeTree is the number of files from which on a tree is large: some 12,000 objects.
const largeTree = 20000

// Store is the handle of one process on a tree. It is safe for concurrent use.
type Store struct {
	root *os.Root
	dir  string
	opts Options
	tick time.Duration // resolution of the clock of the file system

	mu        sync.Mutex // guards what follows
	settings  *schemas.SettingsSpec
	lay       atomic.Pointer[layout]
	decoder   *schemas.Decoder
	against   map[string]func(o, to *schemas.Object, r *schemas.Report) // by kind: the cached Kind.CheckAgainst
	model     *model                                                    // nil until the first Load
	seenGen   int64                                                     // the generation of model
	cache     *cache
	before    map[string]*file // the files before the load by LoadChanged
	freshScan *freshScan       // the scan of Fresh; nil once it is used
	// settledScan is the scan of Fresh if it found the settled tree; nil once a file of the tree changed.
	settledScan *freshScan
	own         atomic.Pointer[Journal] // set under mu
	moved       []schemas.Ref           // objects whose damaged files were moved aside since the last scan
	locks       lock.Options            // of all locks, except Agent and Log; the zero value except in tests
	lost        map[string]bool         // keys of runs whose outputs this process could not restore
	forced      []schemas.Ref           // objects whose entries the next scan makes again
	listed      map[string]listedFolder // folders whose names were read, see newSpecs
	journals    []string                // the names of journals, sorted, as of listed
	watch       *disk.Watch             // reports changes; nil: no watch
	folded      map[int]*Ledger         // ledgers that this process wrote since the last scan, by issue

	held          atomic.Pointer[Lock]
	decodeBuffers sync.Pool // of *room
	shapes        func() *shapes

	needsFullLoad atomic.Bool // dormant objects were requested: the next load reads everything

	deferFrom int          // minDeferredRecords, except in tests
	decoded   atomic.Int64 // files decoded so far, for tests
}

// Kinds returns the kinds in the store's options, as a table.
func (s *Store) Kinds() schemas.Kinds { return s.opts.Kinds }

// Root returns the store's os.Root of the tree, for callers that read or write files outside the responsibility of this
// package.
func (s *Store) Root() *os.Root { return s.root }

// Dir returns the folder of the store's tree, the dir that was passed to Open.
func (s *Store) Dir() string { return s.dir }

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

// Ignore writes a .gitignore for the patterns to the folder dir, unless there is one. It makes git ignore the names that
// match the patterns in the folder, and itself: no commit has to hold it, and each clone makes its own. An existing
// .gitignore belongs to the user and stays unchanged: then wrote is false.
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

// Journal is this process's own journal. Its methods may be called from several goroutines.
type Journal struct {
	store *Store
	name  string // process ID

	mu       sync.Mutex   // taken before Store.mu
	file     *os.File     // nil once closed; guarded by mu
	lock     *flock.Flock // on file: other processes see that this one lives; guarded by mu
	unsynced bool         // file has data that must be synced; guarded by mu
	view     *journalView // the content of file; changed under both locks

	drafts drafts // of the results in view; guarded by mu

	waitedAt time.Time // when Wait last wrote something
}

// line is one statement.
type line struct {
	Op    string        `json:"op"`
	Key   string        `json:"key,omitempty"`
	Run   *schemas.Run  `json:"run,omitempty"`
	At    *schemas.Time `json:"at,omitempty"`
	PID   int           `json:"pid,omitempty"`
	Start int64         `json:"start,omitempty"` // as proc.ID.Start
	Turn  *schemas.Turn `json:"turn,omitempty"`

	Groups map[string]int `json:"groups,omitempty"` // see Wait
}

// Lock is the lock of the whole tree.
type Lock struct {
	*lock.Lock
	store *Store
}

type cache struct {
	store  *Store
	inputs map[string]*inputFile // the inputs that load found; nil before

	records int  // in the file, including replaced ones
	broken  bool // the file must be rewritten

	mu   sync.Mutex
	out  *os.File
	lock *flock.Flock // on out, while it is new
	new  bool         // out is a new file that is not in place yet

	spare sync.Pool // of *encoder
}

// cachePart is the content of one block.
type cachePart struct {
	files  []*file
	inputs map[string]*inputFile
	ok     bool
}

// block is the position of a payload in the file.
type block struct {
	at   int64
	size int
	hash uint64
}

// freshScan is the result of Fresh's scan, for the Load that follows: files are scanned once.
type freshScan struct {
	gen    int64     // before the scan
	at     time.Time // after the scan
	layout *layout
	parts  []freshCollector
}

type scannedFile struct {
	dir  string
	name []byte
	area area
	look [2]uint64
	stat disk.Stat
}

// shapes are those of the files under state/.
type shapes struct {
	run      *shape
	statuses map[string]*shape // by kind
}

// drafts are records of results that are written to temporary files while other effects still run, so that a checkpoint
// only syncs and renames them: creating the files takes longest. They are disposable: the checkpoint writes records that
// were not drafted or were lost, and a sweep removes those of a killed process.
type drafts struct {
	mu      sync.Mutex
	working sync.WaitGroup
	busy    bool
	queue   []*schemas.Run

	// Owned by the worker while it runs.
	batch *durable.Staged
	made  []record
}

// record is the file of a finished run.
type record struct {
	run  *schemas.Run
	path string
	data []byte
}

// The paths of local files, below the root.
const (
	localDir    = ".reconcile"
	tmpDir      = ".reconcile/tmp"
	cacheDir    = ".reconcile/cache"
	cachePath   = ".reconcile/cache/tree"
	cacheTemp   = ".reconcile/cache/tree.new"
	settledPath = ".reconcile/cache/settled"
	journalDir  = ".reconcile/journal"

	damagedDir     = ".reconcile/damaged"
	generationPath = ".reconcile/generation"
	treeLockPath   = ".reconcile/tree"
	runsFolder     = "runs"
	journalSuffix  = ".journal"
	journalNew     = ".new" // suffix of an unfinished one
)

// freshCollector is the visitor that computes the fingerprint and keeps the scanned files in a compact form, since they
// are seldom used.
type freshCollector struct {
	fingerprinter
	troubles []scanError
	full     [][]scannedFile // full lists
	files    []scannedFile
	names    []byte   // of files, concatenated
	folders  []string // to watch
	others   []string // the paths that are not part of the tree
}

const (
	opClaim   = "claim"
	opStart   = "start"
	opFinish  = "finish"
	opRelease = "release"
	opTurn    = "turn"
	opWait    = "wait"
)

// decoder reads blocks.
type decoder struct {
	sections.Decoder
	store  *Store
	kinds  map[string]schemas.Kind
	kind   string           // the last one of kinds
	only   string           // the kind of objects whose specs are decoded; "": all
	fields map[string][]any // field paths repeat: all objects share them
	leave  bool             // the records of a ledger, which are the end of its record, are not there
}

// encoder writes records into a block: space for the block's header, then the payload.
type encoder struct {
	sections.Encoder
	records int
	files   []*file // the file of each record, if it is of a file of the tree
	starts  []int   // the start of each of these records in b
	packed  []byte  // reused from file to file
}
