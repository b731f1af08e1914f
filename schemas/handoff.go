package schemas

import (
	"cmp"
	"fmt"
)

// PipelineID names the pipeline of a node with an index: dag/checks:implement/1.
func PipelineID(dag, node string, index int) string {
	return fmt.Sprintf("dag/%s:%s/%d", dag, node, index)
}

// Handoffs are the hand-offs of a node's work under its key: the rest of the work goes on in a new conversation of an agent.
type Handoffs struct {
	// Index is that of the pipeline at work: 0 is the first one, and each hand-off that completes opens the next.
	Index int `json:"index"`
	// Stopped is set while a person does not want any hand-off, Asked while one that a person wants waits for the end of the turn.
	Stopped *HandoffWord `json:"stopped,omitempty"`
	Asked   *HandoffWord `json:"asked,omitempty"`
	Chain   []Handoff    `json:"chain,omitempty"` // oldest first
}

// HandoffWord is what a person wants of the hand-offs of a node.
type HandoffWord struct {
	Action string `json:"action"`
	By     string `json:"by,omitempty"` // with the proof
	Text   string `json:"text,omitempty"`
	At     Time   `json:"at"`
}

// Said says who wants it, and why, in a line.
func (w *HandoffWord) Said() string {
	text := cmp.Or(w.By, "a person")
	if w.Text != "" {
		text += ": " + w.Text
	}
	return text
}

// Handoff is one hand-off.
type Handoff struct {
	Index   int    `json:"index"` // of the pipeline that it opens
	Phase   string `json:"phase"` // one of the Handoff constants
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"` // what became of it
	At      Time   `json:"at"`                // when it was requested
	EndedAt Time   `json:"endedAt,omitzero"`  // when it was Completed, Failed or Cancelled
	// Run is the key of the run whose conversation ends, and Agent whose it was.
	Run          string  `json:"run"`
	Agent        string  `json:"agent"`
	ContextUsage float64 `json:"contextUsage,omitempty"` // the used part, 0 to 1; 0 where that is not known
	Action       string  `json:"action,omitempty"`       // of the person who asked for it
	// Architect is the agent whose word it waits for, or who gave it, and PlanChange the request to it; empty where no one is asked.
	Architect    string `json:"architect,omitempty"`
	PlanChange   string `json:"planChange,omitempty"`
	Instructions string `json:"instructions,omitempty"` // of Architect, for the one who goes on
}

// Phases of a hand-off.
const (
	HandoffRequested = "Requested" // the architect is asked
	HandoffAccepted  = "Accepted"  // the architect agrees, and what it changes is being applied
	HandoffCompleted = "Completed" // the old pipeline is closed, and the new one open
	HandoffFailed    = "Failed"    // the same pipeline goes on in a new conversation
	HandoffCancelled = "Cancelled" // a person stopped it: the same conversation goes on
)

// Open reports whether it is not decided yet what becomes of a hand-off.
func (h *Handoff) Open() bool { return h.Phase == HandoffRequested || h.Phase == HandoffAccepted }

// Last is the latest hand-off; nil for none.
func (h *Handoffs) Last() *Handoff {
	if h == nil || len(h.Chain) == 0 {
		return nil
	}
	return &h.Chain[len(h.Chain)-1]
}

// Made counts the hand-offs that no person asked for or stopped.
func (h *Handoffs) Made() (n int) {
	if h == nil {
		return 0
	}
	for k := range h.Chain {
		if x := &h.Chain[k]; x.Action == "" && x.Phase != HandoffCancelled {
			n++
		}
	}
	return n
}

// Of is the latest hand-off of a run; nil for none.
func (h *Handoffs) Of(run string) *Handoff {
	for k := len(h.Chain) - 1; k >= 0; k-- {
		if h.Chain[k].Run == run {
			return &h.Chain[k]
		}
	}
	return nil
}

// PipelineHandoff is what one pipeline leaves to the next. It is part of a [Checkpoint], which has the session and the time.
type PipelineHandoff struct {
	OldPipelineID string `json:"oldPipelineId"` // dag/NAME:NODE/INDEX
	NewPipelineID string `json:"newPipelineId"`
	DAGID         string `json:"dagId"`
	TaskName      string `json:"taskName"`
	HandoffReason string `json:"handoffReason"`
	HandoffIndex  int    `json:"handoffIndex"`
	TaskState
}

// TaskState is what records tell of a node's work to people who ask.
type TaskState struct {
	Engineer EngineerState `json:"engineerState"`
	// Inspector and Tester are nil without a pipeline.
	Inspector *InspectorState `json:"inspectorState,omitempty"`
	Tester    *TesterState    `json:"testerState,omitempty"`
}

// EngineerState is what an engineer was told, has done, and leaves.
type EngineerState struct {
	PipelineID     string `json:"pipelineId,omitempty"` // where there was, or is, a hand-off
	OriginalPrompt string `json:"originalPrompt"`
	// Accomplished are its reports, and the changes that it committed, oldest first.
	Accomplished []string     `json:"accomplished,omitempty"`
	FilesChanged []FileChange `json:"filesChanged,omitempty"`
	Remaining    []string     `json:"remaining,omitempty"` // by its latest report
	// ContextNotes are the end of what it said last, and its latest tool calls.
	ContextNotes string `json:"contextNotes,omitempty"`
	// ContextUsage is the used part of its context, 0 to 1; 0 where that is not known.
	ContextUsage  float64 `json:"contextUsage,omitempty"`
	HandoffReason string  `json:"handoffReason,omitempty"` // why its work is handed over
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
