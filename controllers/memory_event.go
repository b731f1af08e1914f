package controllers

import (
	"fmt"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// Types of the events about the memory (agentx-spec, memory pipeline 3.3).
const (
	MemoryStored   = "memory-stored"
	MemoryRecalled = "memory-recalled"
)

// Reasons of events about the memory.
const (
	wasStored    = "Stored"
	wasRecalled  = "Recalled"
	wasCompacted = "Compacted"
	ofMemory     = "Memory" // something about the memory that a person should know
)

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

// NewMemoryEvent reports that observations were stored or recalled: typ is MemoryStored or MemoryRecalled. tokens
// counts the stored observations, or the section that the agent received.
func NewMemoryEvent(typ, agent string, issue int, ids []string, tokens int, at time.Time) Event {
	e := Event{Time: schemas.NewTime(at), Ref: agentRef(agent), Reason: wasStored}
	what := "stored for"
	if typ == MemoryRecalled {
		e.Reason, what = wasRecalled, "recalled for"
	}
	if ids == nil {
		ids = []string{}
	}
	e.Remembered = &Remembered{Type: typ, Agent: agent, IssueNumber: issue, Count: len(ids), TotalTokens: tokens,
		ObservationIDs: ids, Timestamp: at.UnixMilli()}
	e.Message = fmt.Sprintf("%s %s %s, %s", schemas.Count(len(ids), "observation"), what, issueWords(issue), schemas.Count(tokens, "token"))
	return e
}

func issueWords(n int) string {
	if n == 0 {
		return "no issue"
	}
	return fmt.Sprintf("issue %d", n)
}

// NewMemoryCompacted tells that the observations of an issue became fewer.
func NewMemoryCompacted(issue, before, after int, at time.Time) Event {
	return Event{Time: schemas.NewTime(at), Ref: schemas.Ref{Kind: "Memory", Name: fmt.Sprintf("issue-%d", issue)},
		Reason: wasCompacted, Message: fmt.Sprintf("%s became %d", schemas.Count(before, "observation"), after)}
}

// NewMemoryWarning tells what a person should know about the memory.
func NewMemoryWarning(text string, at time.Time) Event {
	return Event{Time: schemas.NewTime(at), Ref: schemas.Ref{Kind: "Memory", Name: "store"}, Reason: ofMemory,
		Message: text, Warning: true}
}
