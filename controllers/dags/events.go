package dags

import (
	"iter"
	"maps"
	"slices"

	"reconcile.dev/reconcile/controllers/dags/plan"
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
	var names iter.Seq[string]
	if after.Object != nil {
		if changed, known := plan.Of(after.Object).Changed(was, is); known {
			names = slices.Values(changed)
		}
	}
	if names == nil {
		names = maps.Keys(is.Nodes)
	}
	return nodeEvents(after.Ref, was, is, names)
}

// nodeEvents lists the transitions of nodes; the others did not change.
func nodeEvents(ref schemas.Ref, was, is *schemas.DAGStatus, names iter.Seq[string]) []settle.Event {
	var before map[string]schemas.NodeStatus
	if was != nil {
		before = was.Nodes
	}
	var out []settle.Event
	for _, name := range moved(before, is.Nodes, names) {
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

// moved lists those of the named nodes whose states differ, sorted.
func moved(before, after map[string]schemas.NodeStatus, names iter.Seq[string]) (out []string) {
	for name := range names {
		n, old := after[name], before[name]
		if old.State != n.State || old.Reason != n.Reason || old.Key != n.Key || old.Attempts != n.Attempts {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
