package dags

import (
	"slices"

	"reconcile.dev/reconcile/controllers/dags/plan"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// steps lists what would become of the nodes that are not at their end, in execution order.
func steps(e *state.Entry, out settle.Out) []settle.Step {
	st, ok := out.Status.(*schemas.DAGStatus)
	if !ok || e.Object == nil {
		return nil
	}
	p := plan.Of(e.Object)
	var was *schemas.NodeStatuses
	if old, ok := e.Status().(*schemas.DAGStatus); ok {
		was = old.Nodes
	}
	runs, waits := map[string]bool{}, map[string]bool{}
	shut := letsNothingStart(st.Nodes)
	var steps []settle.Step
	for _, i := range p.Order {
		n := &p.Spec.Nodes[i]
		s := st.Nodes.Of(n.Name)
		step := settle.Step{Ref: e.Ref, Node: n.Name}
		if waits[n.Name] = keepsWaiting(n, s, shut, waits); waits[n.Name] {
			continue
		}
		switch s.State {
		case schemas.NodePending, schemas.NodeQueued:
			runs[n.Name] = true
			step.Verb, step.Why = settle.StepRun, whyRun(n, s, was, runs, st.Nodes, p.Retries[i].Limit)
		case schemas.NodeRunning:
			if s.Reason != settle.ReasonEnding {
				continue
			}
			step.Verb, step.Why = settle.StepCancel, s.Message
		case schemas.NodeSkipped, schemas.NodeCancelled:
			if was.Of(n.Name).State == s.State {
				continue
			}
			step.Verb, step.Why = settle.StepSkip, s.Message
			if s.State == schemas.NodeCancelled {
				step.Verb = settle.StepCancel
			}
		default:
			continue
		}
		if n.Joins() {
			continue // it does nothing itself
		}
		steps = append(steps, step)
	}
	return steps
}

// letsNothingStart reports whether the DAG or its session is paused, say: only then is a node pending with a reason.
func letsNothingStart(nodes *schemas.NodeStatuses) bool {
	for _, s := range nodes.All() {
		if s.State == schemas.NodePending && s.Reason != "" {
			return true
		}
	}
	return false
}

// keepsWaiting reports whether no run can start the node now: it is blocked, or pending in a paused DAG, or after a
// node in waits.
func keepsWaiting(n *schemas.Node, s schemas.NodeStatus, shut bool, waits map[string]bool) bool {
	switch s.State {
	case schemas.NodeBlocked:
		return true
	case schemas.NodePending:
		return shut || slices.ContainsFunc(n.Needs, func(need string) bool { return waits[need] })
	}
	return false
}

// tries are the tries of a node of a DAG.
func tries(e *state.Entry, node string) settle.Tries {
	p := plan.Of(e.Object)
	i, ok := p.Index[node]
	if !ok {
		return settle.Tries{}
	}
	n := &p.Spec.Nodes[i]
	return settle.Tries{Most: 1 + p.Retries[i].Limit, Agent: n.Agent, Limit: n.Timeout, Whole: p.Spec.Policy.Timeout}
}
