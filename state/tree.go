package state

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"reconcile.dev/reconcile/schemas"
)

// Tree is the input of decisions: specs, statuses, records, ledgers, settings and problems, at one moment. It is
// immutable; With makes the next one. Methods that return slices return shared ones: callers must not change them.
type Tree struct {
	kinds       schemas.Kinds
	shelves     map[string][]*Entry // by kind, sorted by name
	referrers   map[schemas.Ref][]schemas.Ref
	settings    *schemas.SettingsSpec
	problems    []schemas.Problem     // sorted by path, line, column
	deferred    *deferredRecords      // nil: none
	ledgers     []*Ledger             // sorted by issue
	checkpoints []*schemas.Checkpoint // sorted by name
	dormant     *dormantSet           // objects that were not loaded; nil: all were loaded
	expansions  expansions
}

// Entry holds a tree's data about one object. An object whose spec was deleted has an entry until its status, records and
// claims are removed.
type Entry struct {
	schemas.Ref
	// Object is the spec; nil if it is missing or invalid.
	Object *schemas.Object
	// Problems are the errors of the object's own file or files. An object with errors is broken: its spec exists, Object
	// is nil, and the last status stays.
	Problems []schemas.Problem
	// Refs are the references in the valid part of a broken object; nil if Object, which has its own, is not nil.
	Refs   []schemas.Reference
	status *lazyStatus // nil without a status file
	// StatusPath is the path of the status file below the root, whether it exists or not.
	StatusPath string
	runs       *lazyRuns // nil without records
	// Claims are the effects of this object that a live process has claimed or is running, sorted by Key.
	Claims []Claim
	// Inputs holds, for each node of a DAG that declares inputs, the digest of the files that its globs match now.
	Inputs map[string]string
	// Missing holds, for each node of a DAG that declares outputs, those that do not exist now; nil when all exist.
	Missing map[string]Missing
	// Accepted is, for an Observation, the digest of the spec that the memory has ingested; "" if that is not known. The
	// code that updates the memory sets it if it may affect the status.
	Accepted string
}

// Broken reports whether the entry's spec is invalid, as it has Problems. The spec exists.
func (e *Entry) Broken() bool { return len(e.Problems) > 0 }

// Gone reports whether the entry has no object and is not broken: its spec does not exist.
func (e *Entry) Gone() bool { return e.Object == nil && !e.Broken() }

// Claim is a recorded intent of an effect without a result, claimed by a live process.
type Claim struct {
	schemas.Run        // Outcome is empty; StartedAt is zero until it was started
	Process     string // the name of the journal of the process that claimed it
	PID         int    // process group of the effect, once started
	Start       int64  // the start time of that process, as proc.ID.Start; 0: not known
	// Heard is when Turn was reported; zero without a report.
	Heard schemas.Time
}

// Schemas returns the table of schemas.Kinds with which the tree was read or made.
func (t *Tree) Schemas() schemas.Kinds { return t.kinds }

// Settings returns the spec of the tree's settings, with defaults; never nil.
func (t *Tree) Settings() *schemas.SettingsSpec { return t.settings }

func references(e *Entry) []schemas.Ref {
	if e == nil || e.Object == nil {
		return nil
	}
	out := make([]schemas.Ref, len(e.Object.Refs))
	for i, r := range e.Object.Refs {
		out[i] = r.To
	}
	return out
}

// withSettings returns a tree with other settings and problems and the same entries.
func (t *Tree) withSettings(s *schemas.SettingsSpec, problems []schemas.Problem) *Tree {
	next := *t
	next.settings = s
	next.problems = sortProblems(problems)
	return &next
}

func find(shelf []*Entry, name string) (int, bool) {
	return slices.BinarySearchFunc(shelf, name, func(e *Entry, n string) int { return strings.Compare(e.Name, n) })
}

func sortProblems(ps []schemas.Problem) []schemas.Problem {
	ps = slices.Clone(ps)
	slices.SortStableFunc(ps, func(a, b schemas.Problem) int {
		return cmp.Or(strings.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column),
			strings.Compare(a.Message, b.Message))
	})
	return ps
}

// lazyStatus is the status in a file.
type lazyStatus struct {
	once  sync.Once
	store *Store
	path  string
	raw   []byte // the text to decode; nil once it is decoded, unless packed
	is    atomic.Pointer[schemas.Status]

	// packed says that raw has no whitespace and stays: the decoded status points into it, and can be made again.
	packed    bool
	briefOnce sync.Once
	brief     schemas.Brief
}

// lazyRun is the record in a file.
type lazyRun struct {
	once     sync.Once
	deferred *deferredRecords // set if reading it was deferred; then only the key is set
	key      string
	has      Traits
	raw      []byte // the text to decode; nil once it is decoded
	is       *schemas.Run
}

// lazyRuns are the records of an object.
type lazyRuns struct {
	once    sync.Once
	files   []*lazyRun
	more    []*schemas.Run // in journals
	n       int            // the number of records
	all     []*schemas.Run // sorted, after the first access
	inFiles *fileRuns      // in files, if sorted before; may be nil
}

// fileRuns are the records of some files, shared by the entries of an object with the same files.
type fileRuns struct {
	once sync.Once
	all  []*schemas.Run // sorted
}

// deferredRecords are records that were found and not read. They are read through their own root: the store may be closed
// by then.
type deferredRecords struct {
	once  sync.Once
	store *Store
	root  *os.Root
	want  []scanEntry

	found    map[string]*lazyRun // by key
	problems []schemas.Problem
}

// Dormant is an object that was not loaded.
type Dormant struct {
	schemas.Ref
	Brief schemas.Brief
	Refs  []schemas.Ref // the references of its spec
	path  uint64        // the hash of its path in lower case
	coded []byte        // its encoding in the base; nil: not encoded yet
}

// Unready reports whether the object waits, as it should.
func (o *Dormant) Unready() bool { return o.Brief.Ready != "" && o.Brief.Ready != schemas.True }

// dormantSet is the dormant objects of a tree.
type dormantSet struct {
	base      *base
	activated map[int]bool // the indices of those that are loaded after all; a new map for each tree
	reader    *dormantReader
}

// dormantReader reads dormant objects, each when it is first asked for. The trees of a run and the model share it.
type dormantReader struct {
	base *base
	from func(i int) *dormantObject // reads one

	mu      sync.Mutex
	objects map[int]*dormantObject // by index
	woken   []int                  // those of which a tree has other entries, and the model does not know that yet
	unready map[string]int         // by kind: the objects of base that are not ready
	listed  map[string]listedKind  // by kind: what was listed last
}

// listedKind is all entries of a kind in a tree with some loaded ones and some dormant ones.
type listedKind struct {
	loaded  []*Entry
	dormant *dormantSet
	all     []*Entry
}

// dormantObject is a dormant object that was read.
type dormantObject struct {
	files []*file // nil: the cache did not have them all, and the entry is from the whole tree
	entry *Entry
}

// Ledger is the ledger of one issue as it was read: state/clarifications/issue-<N>.json, which third-party programs may
// also write. It is immutable, and safe for concurrent use.
type Ledger struct {
	Issue int    // 0: questions without an issue
	Last  int    // the highest sequence number in use, including that of lost records; 0: none
	Open  int    // records that are neither resolved nor abandoned
	Path  string // below the root
	// Foreign says that one of these is of another program.
	Foreign bool
	// Doubled says that several records have the same number.
	Doubled bool
	// Rejected are the unusable records. They are not among Records, and stay in the file unchanged.
	Rejected []RejectedRecord

	packed  []byte // the records, as encoder.ledger writes them, or nil if they were not read yet
	read    func() []byte
	size    int    // of what was not read
	hash    uint64 // of the records, in the cache
	unpack  sync.Once
	decode  sync.Once
	records []schemas.Clarification
}

// RejectedRecord is an unusable record of a ledger.
type RejectedRecord struct {
	Line   int    // its first line in the file, from 1
	Number int    // its position among the records, from 1
	ID     string // if it is valid for the issue
	Reason string // a clause: "its id is not one of issue 42"
}

// Missing are the declared outputs of a node that do not exist in the work tree.
type Missing struct {
	Files []string // in the order of their declaration
	// Cached are the keys of the node's runs whose record describes all of Files and whose copies the local cache has.
	Cached []string
	// Lost are the keys of the runs whose outputs this process could not restore.
	Lost []string
}

// base describes the content of each file of the tree when Settle was called last. With it, a run reads and decides only
// the objects that may have changed since. It is disposable: if it is missing, damaged or written by another program,
// everything is read and decided.
type base struct {
	files       []baseFile // those that are not frozen
	inputs      []baseInput
	settings    uint64        // the hash of their content
	records     uint64        // in the cache
	last        baseFile      // the path, content and offset of the last record there
	clocks      []schemas.Ref // objects that are decided again at some time although nothing changes
	frozen      *frozen       // most of the dormant objects, with their files
	thawed      []bool        // by object of frozen: it is not dormant any more
	thawedList  []int         // the indices of these
	live        fingerprint   // of the files of the others
	recent      []Dormant     // the other dormant objects, sorted; their indices begin behind those of frozen
	recentFiles []int         // their numbers of files
	order       []int32       // the indices of files as a scan found them; nil unless frozen should be written in this order
	slots       []uint32      // hash tables of files by path and by stat: 1 + the index; 0: free
	looks       []uint32
	inputSlots  []uint32 // hash table of inputs
}

// baseFile describes a file of the tree when it was settled.
type baseFile struct {
	path     uint64    // the hash of its path
	content  uint64    // the hash of its content
	statHash [2]uint64 // the hash of its stat, as in a fingerprint
	at       uint64    // the offset of its record in the cache; 0: not known
	owner    uint64    // 1 + the index of the dormant object that owns it; 0: none
}

// baseInput describes an input, which may also be a file of the tree.
type baseInput struct{ path, content uint64 }

// Traits are properties that one or more records have.
type Traits uint8

// packedOf returns the text without whitespace that a body was not decoded from yet; nil if there is no such text.
func packedOf(body any) []byte {
	switch b := body.(type) {
	case *lazyStatus:
		return b.raw
	case *lazyRun:
		return b.raw
	}
	return nil
}

func traitsOf(r *schemas.Run) (t Traits) {
	for _, has := range []struct {
		it   bool
		mark Traits
	}{{r.Asks != nil || len(r.PlanChange) > 0, Asks}, {len(r.Learned) > 0, Learned}, {r.Agent != "", OfAgent}, {len(r.Outputs) > 0, Outputs},
		{r.Turn != nil && len(r.Turn.Marks) > 0, Marks}} {
		if has.it {
			t |= has.mark
		}
	}
	return t
}

// The traits of a record.
const (
	Asks    Traits = 1 << iota // a question, or a plan change
	Learned                    // something to remember
	OfAgent                    // the run of an agent
	Outputs                    // declared outputs
	Marks                      // shares of a context that were reached
)

// frozen is the file of most dormant objects, mapped into memory: it is read by many runs for each time that it is written.
// The base says which of its objects are not dormant any more. The zero value has no objects.
type frozen struct {
	hash         uint64
	files        []byte            // baseFileSize for each
	slots, looks []byte            // hash tables of the files by path and by stat: 4 bytes for 1 + the index; 0: free
	records      []byte            // for each object, by ref: the hash of its path in lower case, its offset in coded, its number of files and whether it is unready
	coded        []byte            // the objects, as encoder.dormant writes them
	kinds        map[string][2]int // the ranges of the objects of each kind
	referents    []byte            // for each object that others refer to, by ref: where it begins in names and in referrers, 4 bytes each
	names        []byte            // the referents
	referrers    []byte            // indices of the objects that refer to them, 4 bytes each
	decoder      decoder
}

// isFrozen is the owner of a file that is in the file of frozen objects.
const isFrozen = ^uint64(0)

// nextDormants are the dormant objects of the next base.
type nextDormants struct {
	hash   uint64      // of the file of frozen objects
	frozen []byte      // its content, to be written first; nil: it stays
	thawed []int       // its objects that are not dormant any more
	live   fingerprint // of the files of the others
	recent []*Dormant  // the other dormant objects, sorted
	files  []baseFile  // the files of those of them that are not loaded
	// owners are the numbers of loaded objects that become dormant: 1 + the index, or isFrozen.
	owners map[schemas.Ref]uint64
}

// expansions are the DAGs of a tree that may expand.
type expansions struct {
	names []string                   // in no order
	of    map[string]*schemas.Object // expanded, to be used again while nothing changes that they were made of
	anew  []schemas.Ref              // those that were expanded when the tree was made
}
