package state

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/disk"
)

// layout is the layout of a tree's folders.
type layout struct {
	kinds        schemas.Kinds
	specs, state string // slash paths below the root
}

// area is the purpose of a folder or a file.
type area uint8

const (
	areaNone        area = iota
	areaSpecs            // specs/**, state/archive/**: spec files
	areaStatus           // state/<kinds>/*.json: statuses
	areaRuns             // state/runs/<kinds>/<name>/*.json: records of effects
	areaLedgers          // state/clarifications/issue-<N>.json
	areaCheckpoints      // state/checkpoints/<session>/*.json
	areaOther            // other files of the tree that are watched and not decoded: projections, memory, facts
)

// model is the store's data about the tree's files, indexed by object. Trees are made from it; it is changed in place as
// files change.
type model struct {
	layout     *layout
	settings   *settingsFile
	files      map[string]*file
	slots      map[schemas.Ref]*slot
	scanErrors map[string]scanError
	journals   map[string]*journalView
	inputs     *inputs
	deferred   *deferredRecords // nil: none
	dormant    *dormantSet      // objects that were not loaded; nil: none
	declared   *declaredOutputs
	links      map[string]bool                 // spec files that are links: a change of the target does not show at their own path
	unfinished map[string]bool                 // spec files that may be the beginning of one, as an editor leaves it for a moment
	missing    map[string]bool                 // spec files with a reference to a missing object
	expands    map[schemas.Ref]*schemas.Object // that may expand, as they were expanded last
	callers    *Tree                           // the caller's tree at the last refresh, with statuses that are newer than their files; nil before
	related    map[string]bool                 // spec files that are validated against their references
	cased      map[string][]string

	suggestions map[schemas.Ref]string // for missing names
	nameLists   map[string][]string    // by kind
}

// slot holds the files of one object.
type slot struct {
	specs  []*file // sorted by path; more than one is an error
	status *file
	runs   []*file
}

// file is a file of the tree: its stat and its decoded content. It is immutable once it is published, except for racy,
// which Settle clears, and specBody.cross.
type file struct {
	path string
	area area
	// racy says that the file was changed so shortly before it was read that another change may leave the same stat. The
	// next load compares its content, as git does for racy timestamps.
	racy bool
	link bool // path is a symbolic link to the file
	stat disk.Stat
	sum  uint64 // of the content
	at   int64  // the offset of its record in the cache; 0: not known
	body any    // *specBody, schemas.Status, *schemas.Run, *Ledger, *schemas.Checkpoint, *damage; nil: not decoded
}

// specBody is the content of a spec file.
type specBody struct {
	ref      schemas.Ref // zero if the object has no valid name
	at       schemas.Place
	object   *schemas.Object   // nil if problems holds an error
	problems []schemas.Problem // of this file alone
	// refs are the references in the valid part of a broken object; object has its own.
	refs []schemas.Reference

	// cross are the problems with respect to the rest of the tree.
	cross []schemas.Problem
}

// unfinished reports whether the file is empty, has broken syntax or lacks a field of every object: it may be the beginning
// of a file that is being written, so that what it will declare is not known.
func (b *specBody) unfinished() bool {
	return b.ref == (schemas.Ref{}) || slices.ContainsFunc(b.problems, func(p schemas.Problem) bool {
		switch p.Code {
		case "empty", "syntax", "encoding":
			return true
		}
		return p.Code == "missing-field" && !strings.HasPrefix(p.Field, "spec.")
	})
}

// damage says why a file under state/ cannot be used.
type damage struct {
	text         string
	line, column int // 0 if it concerns the whole file
}

// settingsFile is the content of reconcile.yaml. The zero sum means that the file does not exist.
type settingsFile struct {
	stat     disk.Stat
	sum      uint64
	spec     *schemas.SettingsSpec // with defaults; never nil
	sound    bool                  // a part of a broken file is usable
	problems []schemas.Problem
}

// scanError is a path in the tree's folders that cannot be read.
type scanError struct {
	path string
	code string
	text string
}

func unreadable(p string, err error) scanError {
	if cause := (*fs.PathError)(nil); errors.As(err, &cause) {
		err = cause.Err
	}
	switch {
	case errors.Is(err, disk.ErrNotFile):
		return scanError{p, "not-a-file", "it is not a regular file"}
	case errors.Is(err, fs.ErrPermission):
		return scanError{p, "unreadable", "it cannot be read: permission denied; grant read access or remove it"}
	}
	return scanError{p, "unreadable", "it cannot be read: " + err.Error()}
}

// scanEntry is a file that a scan found.
type scanEntry struct {
	path string
	area area
	stat disk.Stat
}

// inputs are the files that the globs of nodes match, and their digests.
type inputs struct {
	globs   []string // of all nodes, sorted, each once
	nodes   map[schemas.Ref]map[string][]string
	files   map[string]*inputFile
	matched map[string][]string      // the files of each glob, sorted; nil until the digests are computed
	users   map[string][]schemas.Ref // the objects with each glob, sorted
	digests map[schemas.Ref]map[string]string
	read    []string             // files that are not in the cache yet
	rules   fingerprinter        // the clean rules of the last full walk
	stored  string               // the part of the whole repository
	ruling  map[string]disk.Stat // the files of attributes below the tree
}

// inputFile is a file that a glob matches.
type inputFile struct {
	stat   disk.Stat
	racy   bool
	digest [sha256.Size]byte // of the content after git's clean filter
	rules  uint64            // the clean rules for it
}

// declaredOutputs are the outputs that specs declare, with those that do not exist.
type declaredOutputs struct {
	root    *os.Root
	bare    bool
	nodes   map[schemas.Ref]map[string][]string // paths by node
	owners  map[string][]schemas.Ref            // by path
	missing map[string]bool                     // by path
	lost    map[string]bool                     // by key of a run; shared with the store
}

// journalView is the content of a journal, by effect.
type journalView struct {
	name     string
	layout   *layout
	alive    bool
	stat     disk.Stat
	size     int64 // the size of the read part
	lines    int
	keys     map[string]*Claim
	waits    map[string]int // as Wait.Groups
	since    schemas.Time   // as Wait.Since
	owners   map[schemas.Ref]*journalOwner
	touched  map[schemas.Ref]bool // since the last Refresh
	problems []schemas.Problem
}

// journalOwner is the content of a journal about one object.
type journalOwner struct {
	results map[string]*schemas.Run
	sorted  []*schemas.Run // the results
	claims  map[string]*Claim
}

// update is the state of one Refresh.
type update struct {
	store              *Store
	model              *model
	touched            map[schemas.Ref]bool // objects with a changed file or dependency
	appeared, vanished bool                 // an object was added, or removed
	renamed            bool                 // a spec file was added or removed
	faulty             bool                 // problems may have changed
	statuses           map[string]bool      // status files that were read again, or removed
	moved              map[schemas.Ref]bool // the files that were moved aside
	needsFullLoad      bool                 // a change affects dormant objects
}

// listedFolder is the stat of a folder when its names were read.
type listedFolder struct {
	stat disk.Stat
	racy bool
}

// secondSalt distinguishes the second hash from the first.
const secondSalt = 0x9e3779b97f4a7c15

// salt is the space for the salt of a hash.
const salt = "........"

// hashes returns the two hashes of a member.
func hashes(b []byte) (two [2]uint64) {
	for i, by := range []uint64{0, secondSalt} {
		binary.LittleEndian.PutUint64(b, by)
		two[i] = xxhash.Sum64(b)
	}
	return two
}
