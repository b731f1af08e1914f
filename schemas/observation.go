package schemas

import "strings"

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
			Suggest("write an id as \"reconcile memory list\" shows it: obs-engineer-29-1709035200000-a1b2c3")
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
