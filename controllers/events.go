package controllers

import (
	"maps"
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
	old, now := statusOf(before), statusOf(after)
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

// dagEvents lists the transitions of the nodes of a DAG.
func dagEvents(before, after *state.Entry) []Event {
	was, _ := statusOf(before).(*schemas.DAGStatus)
	is, ok := after.Status().(*schemas.DAGStatus)
	if !ok {
		return nil
	}
	return nodeEvents(after.Ref, was, is)
}

func statusOf(e *state.Entry) schemas.Status {
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

func nodeEvents(ref schemas.Ref, was, is *schemas.DAGStatus) []Event {
	var out []Event
	for _, name := range slices.Sorted(maps.Keys(is.Nodes)) {
		n := is.Nodes[name]
		var old schemas.NodeStatus
		if was != nil {
			old = was.Nodes[name]
		}
		if old.State == n.State && old.Reason == n.Reason && old.Key == n.Key && old.Attempts == n.Attempts {
			continue
		}
		e := Event{Ref: ref, Node: name, From: old.State, To: n.State, Reason: n.Reason, Message: n.Message,
			Warning: n.State == schemas.NodeFailed}
		if e.Reason == "" {
			e.Reason = n.State // success, and the beginning, need no other
		}
		switch n.State {
		case schemas.NodeRunning:
			e.Time = n.StartedAt
		case schemas.NodeSucceeded, schemas.NodeFailed:
			e.Time = n.FinishedAt
		}
		out = append(out, e)
	}
	slices.SortStableFunc(out, func(a, b Event) int { return a.Time.Compare(b.Time.Time) })
	return out
}
