package dags

import (
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/clarifications"
	"reconcile.dev/reconcile/controllers/dags/plan"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// TaskView is a task as people see it who ask about it.
type TaskView struct {
	Node     string                  `json:"node"` // dag/NAME:NODE
	Agent    string                  `json:"agent"`
	State    string                  `json:"state"`
	Reason   string                  `json:"reason,omitempty"`
	Message  string                  `json:"message,omitempty"`
	Attempts int                     `json:"attempts,omitempty"`
	Pipeline *schemas.PipelineStatus `json:"pipeline,omitempty"`
	MaxLoops int                     `json:"maxLoops,omitempty"` // of the pipeline
	Handoff  *schemas.Handoffs       `json:"handoff,omitempty"`
	schemas.TaskState
}

// Task is the task of a node that an agent works on; ok is false where it does not exist.
func Task(in settle.In, node string) (v TaskView, ok bool) {
	f := decided(in)
	if f == nil {
		return v, false
	}
	i, ok := f.p.Index[node]
	if !ok || f.p.Spec.Nodes[i].Agent == "" {
		return v, false
	}
	s := f.next[i]
	v = TaskView{Node: in.Ref.String() + ":" + node, Agent: f.agentOf(i), State: s.State, Reason: s.Reason, Message: s.Message, Attempts: s.Attempts,
		Pipeline: s.Pipeline, Handoff: s.Handoff, TaskState: f.taskState(i)}
	if p := f.pipelineOf(i); p != nil {
		v.MaxLoops = p.Loops()
	}
	return v, true
}

// decided decides a DAG as it is now; nil for one that cannot be decided.
func decided(in settle.In) *fold {
	st, ok := in.Status().(*schemas.DAGStatus)
	if in.Gone() || in.Broken() {
		return nil
	}
	if !ok {
		st = new(schemas.DAGStatus)
	}
	p := plan.Of(in.Object)
	if _, bad := unusable(in, p); bad {
		return nil
	}
	f := newFold(in, p, st)
	f.run()
	return f
}

// HandedOver decides a DAG once for all its hand-offs. The function that it returns makes the record of one, with the run whose conversation
// it ended; nil where that run has no record any more.
func HandedOver(in settle.In) func(node string, x *schemas.Handoff) (*schemas.PipelineHandoff, *schemas.Run) {
	f := decided(in)
	return func(node string, x *schemas.Handoff) (*schemas.PipelineHandoff, *schemas.Run) {
		if f == nil {
			return nil, nil
		}
		i, ok := f.p.Index[node]
		if !ok || f.recs[i].last == nil {
			return nil, nil
		}
		return &schemas.PipelineHandoff{OldPipelineID: schemas.PipelineID(f.p.Name, node, x.Index-1), NewPipelineID: schemas.PipelineID(f.p.Name, node, x.Index),
			DAGID: f.p.Name, TaskName: node, HandoffReason: x.Reason, HandoffIndex: x.Index, TaskState: f.handoffState(i, x)}, f.recs[i].last
	}
}

// WentOn reports whether a node has worked on under the key of a run after that run.
func WentOn(e *state.Entry, node, key, run string) bool {
	_, seq := clarifications.SplitSeq(run)
	later := func(r *schemas.Run) bool { return r.Node == node && r.NodeKey == key && r.Seq > seq }
	runs := e.Runs() // by node
	first, _ := slices.BinarySearchFunc(runs, node, func(r *schemas.Run, node string) int { return strings.Compare(r.Node, node) })
	for _, r := range runs[first:] {
		if r.Node != node {
			break
		} else if later(r) {
			return true
		}
	}
	return slices.ContainsFunc(e.Claims, func(c state.Claim) bool { return !c.StartedAt.IsZero() && later(&c.Run) })
}
