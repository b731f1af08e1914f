package memstore

import (
	"context"
	"errors"
	"time"

	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
)

// Store keeps what agents learned (ADR-29, decision 6). [Files] is the one that reconcile uses; package storetest tests
// whatever implements it. Its methods may be called from several goroutines.
//
// Ids, agents and issues come from people and agents: a store refuses those of a wrong form with ErrInvalid before it
// looks anywhere.
type Store interface {
	// Capture stores one capture, durably. What was captured before is the same capture: it stores nothing twice.
	Capture(ctx context.Context, spec *schemas.ObservationSpec) (Captured, error)
	// ByID returns one observation in full, also one that is archived; ErrUnknown if there is none.
	ByID(ctx context.Context, id string) (schemas.Observation, error)
	// ByIssue returns the observations of an issue in full, sorted by time and id; none is no error.
	ByIssue(ctx context.Context, issue int) ([]schemas.Observation, error)
	// List returns what the filter lets pass, sorted by issue, time and id.
	List(ctx context.Context, f Filter) ([]Row, error)
	// Search returns what fits a query best, best first.
	Search(ctx context.Context, q Query) ([]Row, error)
	// Remove removes observations for good; ErrUnknown, and nothing is removed, if one of them does not exist.
	Remove(ctx context.Context, ids []string, by, reason string) error
	// Verify notes that observations are true of the files that they are about as these are now. ErrUnknown as in Remove.
	Verify(ctx context.Context, ids []string, by string) error
	// Recall returns what an agent should know of earlier work, and counts it as recalled.
	Recall(ctx context.Context, r Request) (Recalled, error)
	// Compact merges the observations of an issue into fewer; Undo takes the last compaction of it back.
	Compact(ctx context.Context, issue int) (Compacted, error)
	Undo(ctx context.Context, issue int) (Compacted, error)
	// Stats returns the store's figures.
	Stats(ctx context.Context) (schemas.MemoryStats, error)
}

// Errors of a store, for errors.Is.
var (
	ErrUnknown  = errors.New("no such observation")
	ErrInvalid  = errors.New("refused")
	ErrDisabled = errors.New("the memory is turned off: memory.enabled is false in " + schemas.SettingsPath)
	ErrNothing  = errors.New("nothing to do") // of Compact and Undo
)

// HeapGrowth is by how many percent the heap should grow before garbage is collected in a process that captures, as in
// debug.SetGCPercent: with Go's default of 100, it is done again every few captures, beside what a capture waits for.
const HeapGrowth = 300

// Captured is what became of a capture.
type Captured struct {
	Name string `json:"name"` // of the Observation
	Path string `json:"path"` // of its file below the root
	// Observations are those that it added to the memory: none of an entry that repeats another, or that was removed.
	Observations []schemas.Observation `json:"observations"`
	// Repeats are the ids of observations that it said again.
	Repeats []string `json:"repeats,omitempty"`
	// Held says that a lock could not be had: the Observation is written, and the next run takes it into the memory.
	Held bool `json:"held,omitempty"`
	// Why is what was told of that.
	Why string `json:"-"`
	// Known says that this capture had been made before.
	Known bool `json:"known,omitempty"`
	// Tokens are those of Observations.
	Tokens int `json:"tokens"`
}

// Choice says whether observations of a sort are wanted beside the others.
type Choice int

// Choices. The zero value leaves them out.
const (
	Without Choice = iota
	With
	Only
)

// admits reports whether something that is (or is not) of the sort passes.
func (c Choice) admits(is bool) bool { return c == With || is == (c == Only) }

// Filter says which observations are wanted; the zero value lets all pass that stand: neither superseded nor archived.
type Filter struct {
	Agent        string
	Issue        *int
	Category     string
	Since, Until time.Time // of the timestamp: at Since or later, before Until
	Stale        bool      // only those that may be stale
	Superseded   Choice
	Archived     Choice
}

// DefaultLimit is how many results a search has where no limit is given.
const DefaultLimit = 20

// Query is a search.
type Query struct {
	Text string
	Filter
	Limit int // DefaultLimit if 0; negative: all
}

// Row is a line of a list of observations.
type Row = memory.Row

// Request asks for what an agent should know before it begins.
type Request struct {
	Agent   string
	Issue   int    // 0: none
	Context string // what it is about to do
	Budget  *int   // tokens; nil: memory.maxTokens of the settings; 0: nothing is recalled
	By      string // who asks, if not Agent
	Dry     bool   // look only: nothing is counted as recalled
	// Repeatable says that a recall of the same at the same time is this one, asked for again: by a run that was killed
	// after it, for example. Without it each counts.
	Repeatable bool
}

// Recalled is what was found for an agent.
type Recalled struct {
	Text      string   `json:"text"` // the section "## Memory Recall"; "" if there is nothing
	IDs       []string `json:"ids"`  // best first
	Tokens    int      `json:"tokens"`
	Displaced int      `json:"displaced"` // how many tokens of reading again it saves, by estimate
	Total     int      `json:"total"`     // how many observations there are to choose from
	// Least is the smallest budget within which any of them fits, where none fits into this one; else 0.
	Least int `json:"least,omitempty"`
}

// Compacted is what a compaction, or undoing one, did.
type Compacted struct {
	Issue    int    `json:"issueNumber"`
	Before   int    `json:"before"`   // observations of the issue
	After    int    `json:"after"`    // and then
	Archived int    `json:"archived"` // originals in the archive
	Record   string `json:"record"`
}

// Stored are the observations of one agent and issue that Settle took in.
type Stored struct {
	Agent  string
	Issue  int
	IDs    []string
	Tokens int
}

// Settled is what Settle found and did.
type Settled struct {
	Stored []Stored // by issue and agent
	// Edited are the Observations whose specs were changed after they were taken in, with the digest of the spec that was.
	Edited   map[string]string
	Warnings []string
	Wrote    bool
}
