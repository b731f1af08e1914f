package controllers

import (
	"maps"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// layToRest brings the nodes of a DAG whose spec cannot be used up to date with what has ended: no node may seem to run, or to
// be about to, when nothing runs. What follows from an end is decided when the spec can be used again.
func layToRest(e *state.Entry, st *schemas.DAGStatus) {
	shared := true
	for name, n := range st.Nodes {
		if n.State != schemas.NodeRunning && n.State != schemas.NodeQueued || underWay(e, name, n.Key) {
			continue
		}
		if shared {
			st.Nodes, shared = maps.Clone(st.Nodes), false
		}
		st.Nodes[name] = rested(n, latest(e, name, n.Key))
		if n.State == schemas.NodeRunning {
			st.Running--
		}
		if st.Nodes[name].State == schemas.NodeSucceeded {
			st.Progress.Done++
		}
	}
}

// rested is what a node that ran, or was to, has come to: run is its latest record, nil if there is none.
func rested(n schemas.NodeStatus, run *schemas.Run) schemas.NodeStatus {
	next := schemas.NodeStatus{State: schemas.NodePending, Key: n.Key, Generation: n.Generation, Inputs: n.Inputs,
		Verb: n.Verb, Attempts: n.Attempts, StartedAt: n.StartedAt, FinishedAt: n.FinishedAt}
	if run != nil {
		next.StartedAt, next.FinishedAt, next.ExitCode = run.StartedAt, run.FinishedAt, run.ExitCode
		next.Result, next.Output, next.Log = run.Result, run.Output, run.Log
	}
	switch {
	case run != nil && run.Outcome == schemas.OutcomeSucceeded:
		next.State, next.Message = schemas.NodeSucceeded, run.Message
	case n.State == schemas.NodeRunning && (run == nil || run.Outcome == schemas.OutcomeCancelled):
		next.Attempts = max(n.Attempts-1, 0) // it was interrupted, which uses up no attempt
	}
	return next
}

// underWay reports whether a process runs for the node under the key.
func underWay(e *state.Entry, node, key string) bool {
	for i := range e.Claims {
		if c := &e.Claims[i]; c.Node == node && c.NodeKey == key && !c.StartedAt.IsZero() {
			return true
		}
	}
	return false
}

// latest returns the record of the node's last run under the key, nil if there is none.
func latest(e *state.Entry, node, key string) *schemas.Run {
	var last *schemas.Run
	for _, r := range e.Runs {
		if r.Node == node && r.NodeKey == key && (last == nil || r.Seq > last.Seq) {
			last = r
		}
	}
	return last
}
