package dags

import (
	"slices"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// events lists the transitions of the nodes of a DAG.
func events(before, after *state.Entry) []settle.Event {
	was, _ := settle.StatusIn(before).(*schemas.DAGStatus)
	is, ok := after.Status().(*schemas.DAGStatus)
	if !ok {
		return nil
	}
	var former *schemas.NodeStatuses
	if was != nil {
		former = was.Nodes
	}
	var out []settle.Event
	for name := range is.Nodes.Since(former) {
		n, old := is.Nodes.Of(name), former.Of(name)
		if old.State == n.State && old.Reason == n.Reason && old.Key == n.Key && old.Attempts == n.Attempts {
			continue
		}
		e := settle.Event{Ref: after.Ref, Node: name, From: old.State, To: n.State, Reason: n.Reason, Message: n.Message,
			Warning: n.State == schemas.NodeFailed}
		if e.Reason == "" {
			e.Reason = n.State // success, and the beginning, need no other
		}
		switch { // times that were there before are those of the work, and what verified or landed it came later
		case n.State == schemas.NodeRunning && n.StartedAt != old.StartedAt:
			e.Time = n.StartedAt
		case (n.State == schemas.NodeSucceeded || n.State == schemas.NodeFailed) && n.FinishedAt != old.FinishedAt:
			e.Time = n.FinishedAt
		}
		out = append(out, e)
	}
	slices.SortStableFunc(out, inTime)
	return out
}

// inTime compares events by time; those without one happen now, after all others.
func inTime(a, b settle.Event) int {
	if a.Time.IsZero() != b.Time.IsZero() {
		return -a.Time.Compare(b.Time.Time)
	}
	return a.Time.Compare(b.Time.Time)
}
