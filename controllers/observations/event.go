package observations

import (
	"fmt"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// Reasons of events about the memory.
const (
	wasStored    = "Stored"
	wasRecalled  = "Recalled"
	wasCompacted = "Compacted"
	ofMemory     = "Memory" // something about the memory that a person should know
)

// NewEvent reports that observations were stored or recalled: typ is MemoryStored or MemoryRecalled. tokens
// counts the stored observations, or the section that the agent received.
func NewEvent(typ, agent string, issue int, ids []string, tokens int, at time.Time) settle.Event {
	e := settle.Event{Time: schemas.NewTime(at), Ref: schemas.AgentKind.Ref(agent), Reason: wasStored}
	what := "stored for"
	if typ == settle.MemoryRecalled {
		e.Reason, what = wasRecalled, "recalled for"
	}
	if ids == nil {
		ids = []string{}
	}
	e.Remembered = &settle.Remembered{Type: typ, Agent: agent, IssueNumber: issue, Count: len(ids), TotalTokens: tokens,
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

// NewCompacted tells that the observations of an issue became fewer.
func NewCompacted(issue, before, after int, at time.Time) settle.Event {
	return settle.Event{Time: schemas.NewTime(at), Ref: schemas.Ref{Kind: "Memory", Name: fmt.Sprintf("issue-%d", issue)},
		Reason: wasCompacted, Message: fmt.Sprintf("%s became %d", schemas.Count(before, "observation"), after)}
}

// NewWarning tells what a person should know about the memory.
func NewWarning(text string, at time.Time) settle.Event {
	return settle.Event{Time: schemas.NewTime(at), Ref: schemas.Ref{Kind: "Memory", Name: "store"}, Reason: ofMemory,
		Message: text, Warning: true}
}
