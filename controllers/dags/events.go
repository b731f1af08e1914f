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
	return nodeEvents(after.Ref, was, is)
}

func nodeEvents(ref schemas.Ref, was, is *schemas.DAGStatus) []settle.Event {
	var before map[string]schemas.NodeStatus
	if was != nil {
		before = was.Nodes
	}
	var out []settle.Event
	for _, name := range moved(before, is.Nodes) {
		n, old := is.Nodes[name], before[name]
		e := settle.Event{Ref: ref, Node: name, From: old.State, To: n.State, Reason: n.Reason, Message: n.Message,
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

// moved lists the nodes whose states differ, by name.
func moved(before, after map[string]schemas.NodeStatus) (names []string) {
	for name, n := range after {
		if old := before[name]; old.State != n.State || old.Reason != n.Reason || old.Key != n.Key || old.Attempts != n.Attempts {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
