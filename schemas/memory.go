package schemas

import (
	"regexp"
	"sync"
)

// Observation is one thing to remember, in state/memory/issue-<N>.json (agentx-spec, memory pipeline 4.1). The fields up to
// SessionID are those of the seeds; programs that do not know the others keep them or lose them like any field.
type Observation struct {
	ID          string `json:"id"` // obs-<agent>-<issue>-<ms>-<rand6>, see IsObservationID
	Agent       string `json:"agent"`
	IssueNumber int    `json:"issueNumber"`
	Category    string `json:"category"` // one of the Category constants
	Content     string `json:"content"`
	Summary     string `json:"summary"`   // some 50 tokens
	Tokens      int    `json:"tokens"`    // of Content
	Timestamp   Stamp  `json:"timestamp"` // when it was learned
	SessionID   string `json:"sessionId"`

	// Source is the name of the Observation that it came in with. Observations of other programs have none, nor has one
	// that compaction made.
	Source      string   `json:"source,omitempty"`
	Anchors     []Anchor `json:"anchors,omitempty"`
	RecallCount int      `json:"recallCount,omitempty"` // the recalls of it, or of one of its originals
	SeenCount   int      `json:"seenCount,omitempty"`   // how often it was captured, if more than once
	VerifiedAt  Stamp    `json:"verifiedAt,omitzero"`
	// SupersededBy is the id of the newer observation that replaces it: it is not recalled.
	SupersededBy string `json:"supersededBy,omitempty"`
	// Compacts are the ids of the originals of a merged observation; they are in the archive.
	Compacts []string `json:"compacts,omitempty"`
	Archived bool     `json:"archived,omitempty"` // in the archive: a merged one replaces it
}

// Anchor is a file that an observation is about.
type Anchor struct {
	Path string `json:"path"` // slash path below the root
	// Digest of its content when the observation was made or verified last: "sha256:…", "absent", or "" if unknown.
	Digest string `json:"digest,omitempty"`
}

// AnchorAbsent is the digest of an anchor that does not exist.
const AnchorAbsent = "absent"

// ObservationIndex is a line of the manifest (agentx-spec, memory pipeline 4.2).
type ObservationIndex struct {
	ID          string `json:"id"`
	Agent       string `json:"agent"`
	IssueNumber int    `json:"issueNumber"`
	Category    string `json:"category"`
	Summary     string `json:"summary"`
	Tokens      int    `json:"tokens"`
	Timestamp   Stamp  `json:"timestamp"`
}

// Index returns the observation's entry in the manifest: an ObservationIndex with its ID, agent, issue, category, summary,
// tokens and time.
func (o *Observation) Index() ObservationIndex {
	return ObservationIndex{o.ID, o.Agent, o.IssueNumber, o.Category, o.Summary, o.Tokens, o.Timestamp}
}

// MemoryVersion is the version of the files of the memory.
const MemoryVersion = 1

// MemoryFile is state/memory/issue-<N>.json: the observations of one issue, sorted by time and id. Issue 0 is for those
// without an issue. An archive, state/memory/archive/issue-<N>-archived.json, has the same form.
type MemoryFile struct {
	Version      int           `json:"version"`
	IssueNumber  int           `json:"issueNumber"`
	UpdatedAt    Stamp         `json:"updatedAt"` // the newest time in the file, not that of writing
	Observations []Observation `json:"observations"`
	// Sources are the accepted Observations, by name, each with the digest of the accepted spec.
	Sources map[string]string `json:"sources,omitempty"`
	// Links are their links to older observations, by name; later edits of the spec do not change them.
	Links map[string]MemoryLinks `json:"links,omitempty"`
}

// MemoryLinks are the links of one capture to older observations, also of other issues.
type MemoryLinks struct {
	Repeats []string `json:"repeats,omitempty"` // ids that it says again, once for each time
	// Supersedes are, by the id of the newer observation, those that it replaces.
	Supersedes map[string][]string `json:"supersedes,omitempty"`
}

// MemoryManifest is state/memory/manifest.json: a line for each observation that is not archived, sorted by issue, time and
// id. It is derived from the issue files.
type MemoryManifest struct {
	Version   int                `json:"version"`
	UpdatedAt Stamp              `json:"updatedAt"`
	Entries   []ObservationIndex `json:"entries"`
}

// MemoryRecord is state/memory/records/<name>.json: what happened to observations after they were stored. Records are
// never changed, each has a name of its own, and the store is the fold of specs and records, so that no two writers meet.
type MemoryRecord struct {
	Version int `json:"version"`
	// Type is one of the Record constants.
	Type string `json:"type"`
	// Issue is that of the observations; of a recall, that of the work that it was for.
	Issue int   `json:"issueNumber"`
	At    Stamp `json:"at"`
	// By is the agent or person.
	By     string `json:"by,omitempty"`
	Reason string `json:"reason,omitempty"`
	// IDs are the observations, sorted.
	IDs []string `json:"ids"`
	// Groups are, of a compaction, the groups of IDs that become one observation each; other IDs are only archived.
	Groups [][]string `json:"groups,omitempty"`
	// Anchors are, in a verification, the anchors of each observation as they are now.
	Anchors map[string][]Anchor `json:"anchors,omitempty"`
	// Record is, of an undoing, the name of the compaction that is undone.
	Record string `json:"record,omitempty"`
	// Recalls are, of a sum of recalls, the summed ones: the ends of the names of their records, each
	// <issue>-<ms>-<digest>. The sum is of one observation and of one month.
	Recalls []string `json:"recalls,omitempty"`
	// Tokens is, of a recall, its length; Displaced the estimated cost of reading the sources again.
	Tokens    int `json:"tokens,omitempty"`
	Displaced int `json:"displaced,omitempty"`
}

// Types of records.
const (
	RecordRemoved     = "removed"
	RecordVerified    = "verified"
	RecordRecalled    = "recalled"
	RecordRecalls     = "recalls" // a sum
	RecordCompacted   = "compacted"
	RecordUncompacted = "uncompacted"
)

// Categories of observations, in the order of output.
const (
	CategoryDecision   = "decision"
	CategoryCodeChange = "code-change"
	CategoryError      = "error"
	CategoryKeyFact    = "key-fact"
	CategorySummary    = "compaction-summary"
)

// Categories lists the categories, in the order of output.
func Categories() []string {
	return []string{CategoryDecision, CategoryCodeChange, CategoryError, CategoryKeyFact, CategorySummary}
}

// MemoryStats are the figures of a store (agentx-spec, memory pipeline 2.4).
type MemoryStats struct {
	TotalObservations int            `json:"totalObservations"`
	TotalTokens       int            `json:"totalTokens"`
	IssueCount        int            `json:"issueCount"`
	OldestTimestamp   Stamp          `json:"oldestTimestamp"`
	NewestTimestamp   Stamp          `json:"newestTimestamp"`
	ByCategory        map[string]int `json:"byCategory"`
	ByAgent           map[string]int `json:"byAgent"`
	// What the seeds do not name:
	Superseded int   `json:"superseded"`
	Archived   int   `json:"archived"`
	Recalls    int   `json:"recalls"`
	DiskBytes  int64 `json:"diskBytes"` // of state/memory
}

var observationID = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^obs-[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?-(?:0|[1-9][0-9]{0,9})-[0-9]{1,15}-[0-9a-z]{6}$`)
})

const stampLayout = "2006-01-02T15:04:05.000Z07:00"
