package memstore

import (
	"context"
	"errors"
	"time"

	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
)

// Store stores what agents learned (ADR-29, decision 6). [Files] is the implementation that reconcile uses; package
// storetest tests implementations. Its methods are safe for concurrent use.
//
// Ids, agents and issues come from people and agents: a store refuses malformed ones with ErrInvalid before any access.
type Store interface {
	// Capture stores one capture, durably. A repeated capture is stored only once.
	Capture(ctx context.Context, spec *schemas.ObservationSpec) (Captured, error)
	// ByID returns one complete observation, also if archived; ErrUnknown if it does not exist.
	ByID(ctx context.Context, id string) (schemas.Observation, error)
	// ByIssue returns the complete observations of an issue, sorted by time and id. It is not an error to find nothing.
	ByIssue(ctx context.Context, issue int) ([]schemas.Observation, error)
	// List returns the matches of the filter, sorted by issue, time and id.
	List(ctx context.Context, f Filter) ([]Row, error)
	// Search returns the best matches of a query, best first.
	Search(ctx context.Context, q Query) ([]Row, error)
	// Remove removes observations permanently; ErrUnknown, with nothing removed, if one of them does not exist.
	Remove(ctx context.Context, ids []string, by, reason string) error
	// Verify records that observations are true of the present files that they refer to. ErrUnknown as in Remove.
	Verify(ctx context.Context, ids []string, by string) error
	// Recall returns what an agent should know of earlier work, and counts it as recalled.
	Recall(ctx context.Context, r Request) (Recalled, error)
	// Compact merges the observations of an issue into fewer; Undo reverts the issue's last compaction.
	Compact(ctx context.Context, issue int) (Compacted, error)
	Undo(ctx context.Context, issue int) (Compacted, error)
	// Stats returns the store's statistics.
	Stats(ctx context.Context) (schemas.MemoryStats, error)
}

// Errors of a store, for errors.Is.
var (
	ErrUnknown  = errors.New("no such observation")
	ErrInvalid  = errors.New("refused")
	ErrDisabled = errors.New("the memory is turned off: memory.enabled is false in " + schemas.SettingsPath)
	ErrNothing  = errors.New("nothing to do") // of Compact and Undo
)

// HeapGrowth is the GC percentage for processes that capture, as in debug.SetGCPercent: with Go's default of 100, a
// collection runs every few captures and delays them.
const HeapGrowth = 300

// Captured is the result of a capture.
type Captured struct {
	Name string `json:"name"` // of the Observation
	Path string `json:"path"` // of its file below the root
	// Observations are the new observations: an entry that repeats another, or that was removed, gives none.
	Observations []schemas.Observation `json:"observations"`
	// Repeats are the ids of observations that it repeated.
	Repeats []string `json:"repeats,omitempty"`
	// Held is set if a lock was not available: the Observation is written, and the next run ingests it.
	Held bool `json:"held,omitempty"`
	// Why is the reason.
	Why string `json:"-"`
	// Known is set if this capture had been made before.
	Known bool `json:"known,omitempty"`
	// Tokens are those of Observations.
	Tokens int `json:"tokens"`
}

// The zero value excludes them.
const (
	Without Choice = iota
	With
	Only
)

// Filter selects observations; the zero value selects all current ones: neither superseded nor archived.
type Filter struct {
	Agent        string
	Issue        *int
	Category     string
	Since, Until time.Time // of the timestamp: at Since or later, before Until
	Stale        bool      // only those that may be stale
	Superseded   Choice
	Archived     Choice
}

// DefaultLimit is the default number of results of a search.
const DefaultLimit = 20

// Query is a search.
type Query struct {
	Text string
	Filter
	Limit int // DefaultLimit if 0; negative: all
}

// Row is a line of a list of observations.
type Row = memory.Row

// Request describes an agent's task for a recall.
type Request struct {
	Agent   string
	Issue   int    // 0: none
	Context string // the task
	Budget  *int   // tokens; nil: memory.maxTokens of the settings; 0: nothing is recalled
	By      string // the requester, if not Agent
	Dry     bool   // do not count it as recalled
	// Repeatable is set if a recall with equal fields at the same time is a repetition of this one, for example after a killed
	// run. Otherwise each counts.
	Repeatable bool
}

// Recalled is the result of a recall.
type Recalled struct {
	Text      string   `json:"text"` // the section "## Memory Recall"; "" if there is nothing
	IDs       []string `json:"ids"`  // best first
	Tokens    int      `json:"tokens"`
	Displaced int      `json:"displaced"` // estimated tokens of rereading that it saves
	Total     int      `json:"total"`     // number of candidates
	// Least is the smallest budget that fits any candidate, if none fits into this one; else 0.
	Least int `json:"least,omitempty"`
}

// Compacted is the result of a compaction, or of undoing one.
type Compacted struct {
	Issue    int    `json:"issueNumber"`
	Before   int    `json:"before"`   // observations of the issue
	After    int    `json:"after"`    // and afterwards
	Archived int    `json:"archived"` // originals in the archive
	Record   string `json:"record"`
}

// Stored are the observations of one agent and issue that Settle ingested.
type Stored struct {
	Agent  string
	Issue  int
	IDs    []string
	Tokens int
}

// Settled is the result of Settle.
type Settled struct {
	Stored []Stored // by issue and agent
	// Edited are the Observations whose specs changed after ingestion, with the digest of the ingested spec.
	Edited   map[string]string
	Warnings []string
	Wrote    bool
}
