package settle

import (
	"reconcile.dev/reconcile/schemas"
)

// Event is one transition of an object or a node, for the event log.
type Event struct {
	// Time is when it happened, where a record or condition tells; zero otherwise.
	Time schemas.Time
	Ref  schemas.Ref
	Node string // of a DAG; empty for the object itself
	// From and To are phases of the object or states of the node; From is empty at the beginning, To at the end. For
	// a change of a condition they are equal.
	From, To string
	Reason   string // never empty
	Message  string
	// Warning tells that something is wrong: a failure, an object that is stalled, a question that is stale or escalated.
	Warning bool
	// Clarified is the payload of an event about a clarification; nil for all others.
	Clarified *Clarified
	// Remembered is the payload of an event about the memory; nil for all others.
	Remembered *Remembered
}

// Clarified is the payload of an event about a clarification, with the field names of the specification.
type Clarified struct {
	Type            string       `json:"type"` // one of the Clarification constants of this package
	ClarificationID string       `json:"clarificationId"`
	IssueNumber     int          `json:"issueNumber"`
	FromAgent       string       `json:"fromAgent"`
	ToAgent         string       `json:"toAgent"`
	Topic           string       `json:"topic"`
	Blocking        bool         `json:"blocking"`
	Timestamp       schemas.Time `json:"timestamp"`
	Round           int          `json:"round"`
	Status          string       `json:"status"` // after the event
	// Turn is the turn, for display; nil if the event is that time ran out. Escalation is the decision that a human has to
	// make after an escalation. Neither is part of the payload.
	Turn       *schemas.ThreadEntry `json:"-"`
	Escalation *schemas.Escalation  `json:"-"`
}

// Remembered is the payload of an event about the memory, with the field names of the specification.
type Remembered struct {
	Type           string   `json:"type"` // MemoryStored or MemoryRecalled
	Agent          string   `json:"agent"`
	IssueNumber    int      `json:"issueNumber"`
	Count          int      `json:"count"`
	TotalTokens    int      `json:"totalTokens"`
	ObservationIDs []string `json:"observationIds"`
	Timestamp      int64    `json:"timestamp"` // milliseconds since 1970
}

// Types of the events about clarifications (agentx-prd 5).
const (
	ClarificationRequested = "clarification-requested"
	ClarificationAnswered  = "clarification-answered"
	ClarificationStale     = "clarification-stale"
	ClarificationResolved  = "clarification-resolved"
	ClarificationEscalated = "clarification-escalated"
)

// Types of the events about the memory (agentx-spec, memory pipeline 3.3).
const (
	MemoryStored   = "memory-stored"
	MemoryRecalled = "memory-recalled"
)
