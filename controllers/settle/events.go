package settle

import (
	"slices"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
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

// Events lists the transitions between two entries of one object of the tree; either may be nil.
func Events(t *state.Tree, before, after *state.Entry) []Event {
	old, now := StatusIn(before), StatusIn(after)
	if old == nil && now == nil {
		return nil
	}
	var out []Event
	if now != nil {
		if k := TableOf(t).Row(after.Kind); k != nil && k.Events != nil {
			out = k.Events(before, after)
		}
	}
	described := slices.ContainsFunc(out, func(e Event) bool { return e.Node == "" })
	if e, ok := objectEvent(before, after, old, now); ok && (!described || e.Warning) {
		out = append(out, e)
	}
	return out
}

// StatusIn returns the status of an entry, which may be nil.
func StatusIn(e *state.Entry) schemas.Status {
	if e == nil {
		return nil
	}
	return e.Status()
}

// objectEvent is the transition of the object itself: another phase, or another reason for being ready or not.
func objectEvent(before, after *state.Entry, old, now schemas.Status) (Event, bool) {
	if now == nil {
		return Event{Ref: before.Ref, From: old.Base().Phase, Reason: "Removed", Message: "its spec is gone"}, true
	}
	base := now.Base()
	e := Event{Ref: after.Ref, To: base.Phase, Warning: base.Condition(schemas.Stalled) != nil}
	c := base.Condition(schemas.Ready)
	if c == nil {
		return e, false
	}
	e.Time, e.Reason, e.Message = c.LastTransitionTime, c.Reason, c.Message
	e.Warning = e.Warning || c.Reason == ReasonRefused || c.Reason == ReasonScopeViolation
	if old == nil {
		return e, true
	}
	e.From = old.Base().Phase
	was := old.Base().Condition(schemas.Ready)
	if was == nil || was.Status == c.Status {
		e.Time = schemas.Time{} // the condition's time is that of an earlier change
	}
	same := e.From == e.To && was != nil && was.Status == c.Status && was.Reason == c.Reason
	return e, !same
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

// Types of the events about clarifications (agentx-prd 5).
const (
	ClarificationRequested = "clarification-requested"
	ClarificationAnswered  = "clarification-answered"
	ClarificationStale     = "clarification-stale"
	ClarificationResolved  = "clarification-resolved"
	ClarificationEscalated = "clarification-escalated"
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

// Types of the events about the memory (agentx-spec, memory pipeline 3.3).
const (
	MemoryStored   = "memory-stored"
	MemoryRecalled = "memory-recalled"
)
