package schemas

// TaskState is what records tell of a node's work to people who ask.
type TaskState struct {
	Engineer EngineerState `json:"engineerState"`
	// Inspector and Tester are nil without a pipeline.
	Inspector *InspectorState `json:"inspectorState,omitempty"`
	Tester    *TesterState    `json:"testerState,omitempty"`
}

// EngineerState is what an engineer was told, has done, and leaves.
type EngineerState struct {
	OriginalPrompt string `json:"originalPrompt"`
	// Accomplished are its reports, and the changes that it committed, oldest first.
	Accomplished []string     `json:"accomplished,omitempty"`
	FilesChanged []FileChange `json:"filesChanged,omitempty"`
	Remaining    []string     `json:"remaining,omitempty"` // by its latest report
	// ContextNotes are the end of what it said last, and its latest tool calls.
	ContextNotes string `json:"contextNotes,omitempty"`
	// ContextUsage is the used part of its context, 0 to 1; 0 where that is not known.
	ContextUsage float64 `json:"contextUsage,omitempty"`
}

// FileChange is the change of a file.
type FileChange struct {
	Path       string `json:"path"`
	ChangeType string `json:"changeType,omitempty"` // one of the Change constants of files; empty where it is not known
	Summary    string `json:"summary,omitempty"`    // as "+12 -3 lines"
}

// Changes of files.
const (
	FileCreated  = "created"
	FileModified = "modified"
	FileDeleted  = "deleted"
)

// InspectorState is what an inspector has found.
type InspectorState struct {
	// CurrentFindings are those of its latest verdict, each a line; PendingForEngineer those of them that sent the change back.
	CurrentFindings    []string `json:"currentFindings,omitempty"`
	PendingForEngineer []string `json:"pendingForEngineer,omitempty"`
	// ResolvedByEngineer were found before, and are not found in a later change.
	ResolvedByEngineer []string  `json:"resolvedByEngineer,omitempty"`
	ValidationHistory  []Verdict `json:"validationHistory,omitempty"` // oldest first
}

// TesterState is what a tester has tested.
type TesterState struct {
	TestsCreated []string  `json:"testsCreated,omitempty"` // the files with tests among those that changed
	TestResults  []Verdict `json:"testResults,omitempty"`  // oldest first
	// PendingFailures are the tests that failed in the latest change that was tested, each a line.
	PendingFailures []string `json:"pendingFailures,omitempty"`
	// TestPlanRemaining is what the engineer's report says that is yet to be tested.
	TestPlanRemaining []string `json:"testPlanRemaining,omitempty"`
}

// Verdict is how a step of a pipeline judged a change.
type Verdict struct {
	At      Time   `json:"at"`
	Commit  string `json:"commit,omitempty"`
	Outcome string `json:"outcome"`
	Summary string `json:"summary,omitempty"`
}
