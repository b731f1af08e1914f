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
		switch n.State {
		case schemas.NodeRunning:
			e.Time = n.StartedAt
		case schemas.NodeSucceeded, schemas.NodeFailed:
			e.Time = n.FinishedAt
		}
		out = append(out, e)
	}
	slices.SortStableFunc(out, func(a, b settle.Event) int { return a.Time.Compare(b.Time.Time) })
	return out
}
