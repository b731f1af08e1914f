package schemas

import (
	"regexp"
	"strings"
	"sync"
)

// ObservationKind is the kind Observation.
var ObservationKind = Kind{
	Name: "Observation", Plural: "observations", Aliases: []string{"obs"},
	Short:          "What an agent learned: decisions, changes, errors and facts to remember.",
	New:            func() Spec { return new(ObservationSpec) },
	NewStatus:      func() Status { return new(ObservationStatus) },
	StatusOptional: true,
}

// ObservationSpec is one capture of memory. It is immutable once accepted.
type ObservationSpec struct {
	// Agent is who learned it.
	Agent string `json:"agent" jsonschema:"minLength=1,maxLength=63"`
	// Issue is the number of the issue; 0 or absent means none.
	Issue int `json:"issue,omitempty" jsonschema:"minimum=0,maximum=2147483647"`
	// Session is the session in which it was learned: one of the tree, or one of the program that the agent is.
	Session string `json:"session,omitempty" jsonschema:"maxLength=63"`
	// Timestamp is when, RFC 3339.
	Timestamp Time `json:"timestamp"`
	// Entries are 1 to 50 things learned.
	Entries []ObservationEntry `json:"entries" jsonschema:"minItems=1,maxItems=50"`
	// Run is the key of the run in which it was learned, as dags/checks/review-0123456789abcdef-1; reconcile fills it in.
	Run string `json:"run,omitempty" jsonschema:"maxLength=300"`
	// Clarification is the request whose resolution this is; reconcile fills it in.
	Clarification string `json:"clarification,omitempty" jsonschema:"maxLength=63"`
	// SourceTokens is the number of tokens of the source text: a conversation, a summary.
	SourceTokens int `json:"sourceTokens,omitempty" jsonschema:"minimum=0,maximum=2147483647"`
}

// ObservationEntry is one thing learned.
type ObservationEntry struct {
	// Category is the sort of thing that was learned.
	Category string `json:"category" jsonschema:"enum=decision,enum=code-change,enum=error,enum=key-fact,enum=compaction-summary"`
	// Content is the full text, 1 to 2000 characters.
	Content string `json:"content" jsonschema:"minLength=1,maxLength=2000"`
	// Summary is a compact form of some 50 tokens.
	Summary string `json:"summary,omitempty" jsonschema:"maxLength=500"`
	// Anchors are paths that the entry is about.
	Anchors []string `json:"anchors,omitempty" jsonschema:"maxItems=100"`
	// Digests tell the content of anchors when the entry was made, by path: "sha256:…", or "absent" for a file that did
	// not exist. An anchor without one is never stale, until "reconcile memory verify" notes its content.
	Digests map[string]string `json:"digests,omitempty" jsonschema:"maxProperties=100"`
	// Supersedes lists the ids of older observations that this one replaces: they are not recalled any more.
	Supersedes []string `json:"supersedes,omitempty" jsonschema:"maxItems=100"`
	// Repeats is the id of an earlier observation with the same statement: its count is raised, and nothing else is
	// stored.
	Repeats string `json:"repeats,omitempty" jsonschema:"maxLength=200"`
}

// ObservationStatus exists only while something is wrong with the observation.
type ObservationStatus struct{ Common }

// Default has nothing to fill in.
func (s *ObservationSpec) Default() {}

// Check reports the problems of an observation's spec: bad names, blank content, bad anchors and links, and secrets or
// private text, which must not be in a repository.
func (s *ObservationSpec) Check(r *Report) {
	checkRef(r.At("agent"), s.Agent)
	checkDiscreet(r.At("agent"), s.Agent)
	if s.Session != "" {
		checkRef(r.At("session"), s.Session)
		checkDiscreet(r.At("session"), s.Session)
	}
	checkDiscreet(r.At("run"), s.Run)
	checkDiscreet(r.At("clarification"), s.Clarification)
	for i, e := range s.Entries {
		checkFilled(r.At("entries", i, "content"), e.Content)
		checkDiscreet(r.At("entries", i, "content"), e.Content)
		checkDiscreet(r.At("entries", i, "summary"), e.Summary)
		checkPaths(r, e.Anchors, "entries", i, "anchors")
		e.checkLinks(r, i)
	}
}

// checkLinks reports what an entry, the i-th, refers to in a form that leads nowhere, or with a secret in it.
func (e *ObservationEntry) checkLinks(r *Report, i int) {
	for k, anchor := range e.Anchors {
		checkDiscreet(r.At("entries", i, "anchors", k), anchor)
	}
	for file, digest := range e.Digests { // the field of one would have its key in it
		checkDiscreet(r.At("entries", i, "digests"), file)
		checkDiscreet(r.At("entries", i, "digests"), digest)
	}
	for k, id := range e.Supersedes {
		checkObservationID(r.At("entries", i, "supersedes", k), id)
	}
	if e.Repeats != "" {
		checkObservationID(r.At("entries", i, "repeats"), e.Repeats)
	}
}

// checkObservationID reports a text that is not an id of an observation, or has a secret in it.
func checkObservationID(at Spot, id string) {
	checkDiscreet(at, id)
	if !IsObservationID(id) {
		at.Errorf("bad-id", "is no id of an observation").
			suggest("write an id as \"reconcile memory list\" shows it: obs-engineer-29-1709035200000-a1b2c3")
	}
}

// personAgent begins the names under which the memory stores statements of people, who are not agents of the tree.
const personAgent = "github"

// References is the agent, unless it is a person; observations stay true when it is removed. The session need not be one
// of the tree's.
func (s *ObservationSpec) References() []Reference {
	if s.Agent == personAgent || strings.HasPrefix(s.Agent, personAgent+"-") {
		return nil
	}
	return []Reference{{Field: []any{"agent"}, To: Ref{Kind: AgentKind.Name, Name: s.Agent}}}
}

// IsObservationID reports whether s matches the form of an observation's ID, obs-<agent>-<issue>-<ms>-<rand6>, and is short
// enough. An id that has is safe as part of a path.
func IsObservationID(s string) bool { return len(s) <= 120 && observationID().MatchString(s) }

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
