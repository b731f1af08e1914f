package schemas

import "encoding/json"

// AgentReport is what an agent says about its task, in structured output. It is a claim.
type AgentReport struct {
	// Status is one of the Report constants; empty for an agent that says nothing.
	Status       string   `json:"status,omitempty"`
	Summary      string   `json:"summary,omitempty"`
	FilesChanged []string `json:"filesChanged,omitempty"` // slash paths below the root
	Remaining    []string `json:"remaining,omitempty"`    // what is left to do
	Progress     *float64 `json:"progress,omitempty"`     // in percent
	// Unknown has the fields that this version does not know, as a JSON object.
	Unknown json.RawMessage `json:"unknown,omitempty"`
}

// Statuses of a report.
const (
	ReportDone    = "done"
	ReportFailed  = "failed"
	ReportAsks    = "needs_clarification"
	ReportHandoff = "needs_handoff"
)
