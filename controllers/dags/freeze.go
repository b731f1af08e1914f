package dags

import (
	"fmt"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// freeze updates the status of a DAG whose spec cannot be used with the runs that started and ended: no node may be
// shown as running or queued when nothing runs. Consequences of an end are decided when the spec can be used again.
func freeze(e *state.Entry, st *schemas.DAGStatus) {
	var names []string
	var nodes []*schemas.NodeStatus
	for name, n := range st.Nodes.All() {
		next, moved := frozenNode(e, name, *n)
		names, nodes = append(names, name), append(nodes, n)
		if !moved {
			continue
		}
		nodes[len(nodes)-1] = &next
		st.Running += count(next.State == schemas.NodeRunning) - count(n.State == schemas.NodeRunning)
		st.Progress.Done += count(next.State == schemas.NodeSucceeded)
		if next.State == schemas.NodeRunning && st.StartedAt.IsZero() {
			st.StartedAt = next.StartedAt
		}
	}
	st.Nodes = st.Nodes.Next(names, nodes)
	st.Phase = frozenPhase(st)
}

func count(is bool) int {
	if is {
		return 1
	}
	return 0
}

// frozenPhase is the phase of a DAG that starts nothing because its spec cannot be used. A DAG that has ended, or whose
// phase is unknown, keeps its phase.
func frozenPhase(st *schemas.DAGStatus) string {
	switch {
	case st.Phase == "" || ended(st.Phase):
		return st.Phase
	case st.Running > 0:
		return schemas.DAGRunning
	case st.StartedAt.IsZero():
		return schemas.DAGPending
	}
	return schemas.DAGPaused
}

// tellNodes gives the reason of j to each node that has not started.
func tellNodes(st *schemas.DAGStatus, j settle.Judgement) {
	if st.Nodes.Len() == 0 {
		return // it was never decided
	}
	st.Nodes = st.Nodes.With(func(yield func(string, *schemas.NodeStatus) bool) {
		for name, n := range st.Nodes.All() {
			if n.State != schemas.NodePending {
				continue
			}
			next := *n
			next.Reason, next.Message = j.Reason, j.Message
			if !yield(name, &next) {
				return
			}
		}
	})
}

// frozenNode is the status of a node that ran or was queued; moved reports whether it differs.
func frozenNode(e *state.Entry, name string, n schemas.NodeStatus) (next schemas.NodeStatus, moved bool) {
	if n.State != schemas.NodeRunning && n.State != schemas.NodeQueued {
		return n, false
	}
	c := underWay(e, name, n.Key)
	switch {
	case c == nil:
		return stoppedNode(n, latest(e, name, n.Key)), true
	case n.State == schemas.NodeRunning:
		return n, false
	}
	n.StartedAt, n.Attempts = c.StartedAt, n.Attempts+1
	n.State, n.Reason, n.Message = schemas.NodeRunning, settle.ReasonRunning, fmt.Sprintf("attempt %d", n.Attempts)
	return n, true
}

// stoppedNode is the status of a node in a DAG that is paused or stopped: without a running process. run is its latest record, or nil.
func stoppedNode(n schemas.NodeStatus, run *schemas.Run) schemas.NodeStatus {
	next := schemas.NodeStatus{State: schemas.NodePending, Key: n.Key, Task: n.Task, Generation: n.Generation, Inputs: n.Inputs, Tools: n.Tools,
		Verb: n.Verb, Attempts: n.Attempts, StartedAt: n.StartedAt, FinishedAt: n.FinishedAt}
	if run != nil {
		next.StartedAt, next.FinishedAt, next.ExitCode = run.StartedAt, run.FinishedAt, run.ExitCode
		next.Result, next.Output, next.Log = run.Result, run.Output, run.Log
	}
	switch {
	case run != nil && leavesChange(run): // which is not done before it has landed
	case run != nil && run.Outcome == schemas.OutcomeSucceeded:
		next.State, next.Message = schemas.NodeSucceeded, run.Message
	case n.State == schemas.NodeRunning && (run == nil || run.Outcome == schemas.OutcomeCancelled):
		next.Attempts = max(n.Attempts-1, 0) // it was interrupted, which uses up no attempt
	}
	return next
}

// underWay is the claim of the process that runs for the node under the key; nil if none does.
func underWay(e *state.Entry, node, key string) *state.Claim {
	for i := range e.Claims {
		if c := &e.Claims[i]; c.Node == node && c.NodeKey == key && !c.StartedAt.IsZero() {
			return c
		}
	}
	return nil
}

// latest returns the record of the node's last run under the key, or nil.
func latest(e *state.Entry, node, key string) *schemas.Run {
	var last *schemas.Run
	for _, r := range e.Runs() {
		if r.Node == node && r.NodeKey == key && (last == nil || r.Seq > last.Seq) {
			last = r
		}
	}
	return last
}
