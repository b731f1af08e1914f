package dags

import (
	"slices"

	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/nodes"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// NodeView is one node of a DAG with all that is known of it.
type NodeView struct {
	DAG      string             `json:"dag"`  // dag/name
	Path     string             `json:"path"` // of the spec
	Spec     *schemas.Node      `json:"spec"` // as it runs: made of a matrix, a call or a workflow
	Status   schemas.NodeStatus `json:"status"`
	NeededBy []string           `json:"neededBy"`
	// Runs are the recorded and running attempts, the current one last. Those before the node was changed come first.
	Runs []NodeRun     `json:"runs"`
	Turn *schemas.Turn `json:"turn,omitempty"` // the latest turn of its agent

	Gate   *Gate   `json:"gate,omitempty"`   // what there is to approve
	Origin *Origin `json:"origin,omitempty"` // of a node that was reused, or ran again
	// Missing are the declared outputs that do not exist, Changed those that changed since the run.
	Missing []string `json:"outputsMissing,omitempty"`
	Changed []string `json:"outputsChanged,omitempty"`
}

// NodeRun is an attempt of a node.
type NodeRun struct {
	Key     string       `json:"key"`
	Outcome string       `json:"outcome"` // Running while there is none
	Started schemas.Time `json:"startedAt,omitzero"`
	Ended   schemas.Time `json:"finishedAt,omitzero"`
	Message string       `json:"message,omitempty"`
	// By is its agent, where that is not the node's, and why.
	By string `json:"by,omitempty"`
}

// View describes a node of a DAG, without its outputs.
func View(in settle.In, node string) NodeView {
	v := NodeView{DAG: in.Ref.String(), Path: in.Object.Path, NeededBy: []string{}, Runs: []NodeRun{}, Turn: agents.NodeTurns(in.Entry)[node],
		Status: schemas.NodeStatus{State: schemas.NodePending}}
	spec := schemas.SpecAs[*schemas.DAGSpec](in.Object)
	for i := range spec.Nodes {
		if n := &spec.Nodes[i]; n.Name == node {
			v.Spec = n
		} else if slices.Contains(n.Needs, node) {
			v.NeededBy = append(v.NeededBy, n.Name)
		}
	}
	if st, ok := in.Status().(*schemas.DAGStatus); ok && st.Nodes.Of(node).State != "" {
		v.Status = placesOf(in.Entry, in.Tree).held(node, st.Nodes.Of(node))
		v.Origin = originOf(in.Entry, st, node, v.Spec.Needs)
	}
	attempts, _ := nodes.Attempts(in.Entry, node)
	for _, r := range attempts {
		run := NodeRun{Key: r.Key, Outcome: r.Outcome, Started: r.StartedAt, Ended: r.FinishedAt, Message: r.Message}
		if r.Instead != nil {
			run.By = r.Instead.By(r.Agent)
		}
		if !r.Done() {
			run.Outcome = schemas.NodeRunning
		}
		v.Runs = append(v.Runs, run)
	}
	gates := Gates(in)
	if i := slices.IndexFunc(gates, func(g Gate) bool { return g.Node == node }); i >= 0 {
		v.Gate = &gates[i]
	}
	return v
}
