package schemas

// ObservationKind is the kind Observation.
var ObservationKind = Kind{
	Name: "Observation", Plural: "observations", Aliases: []string{"obs"},
	Short:     "What an agent learned: decisions, changes, errors and facts to remember.",
	New:       func() Spec { return new(ObservationSpec) },
	NewStatus: func() Status { return new(ObservationStatus) },
}

// ObservationSpec is one capture of memory. It is immutable once accepted.
type ObservationSpec struct {
	// Agent is who learned it.
	Agent string `json:"agent" jsonschema:"minLength=1,maxLength=63"`
	// Issue is the number of the issue; 0 or absent means none.
	Issue int `json:"issue,omitempty" jsonschema:"minimum=0,maximum=2147483647"`
	// Session is the session in which it was learned.
	Session string `json:"session,omitempty" jsonschema:"maxLength=63"`
	// Timestamp is when, RFC 3339.
	Timestamp Time `json:"timestamp"`
	// Entries are 1 to 50 things learned.
	Entries []ObservationEntry `json:"entries" jsonschema:"minItems=1,maxItems=50"`
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
}

// ObservationStatus exists only while something is wrong with the observation.
type ObservationStatus struct{ Common }

// Default has nothing to fill in.
func (s *ObservationSpec) Default() {}

// Check reports bad names and paths and blank text.
func (s *ObservationSpec) Check(r *Report) {
	checkRef(r.At("agent"), s.Agent)
	if s.Session != "" {
		checkRef(r.At("session"), s.Session)
	}
	for i, e := range s.Entries {
		checkFilled(r.At("entries", i, "content"), e.Content)
		checkPaths(r, e.Anchors, reads, "entries", i, "anchors")
	}
}

// References are the agent and the session; what was learned stays true when they are gone.
func (s *ObservationSpec) References() []Reference {
	out := []Reference{{Field: []any{"agent"}, To: Ref{Kind: AgentKind.Name, Name: s.Agent}}}
	if s.Session != "" {
		out = append(out, Reference{Field: []any{"session"}, To: Ref{Kind: SessionKind.Name, Name: s.Session}})
	}
	return out
}
