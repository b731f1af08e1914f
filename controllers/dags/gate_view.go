package dags

import (
	"reconcile.dev/reconcile/controllers/dags/plan"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// Gate is a gate that is closed, with what people see who are to approve it.
type Gate struct {
	Node    string                 `json:"node"`
	Digest  string                 `json:"digest"` // of all that follows
	Approve *schemas.Approve       `json:"approve"`
	Agent   string                 `json:"agent,omitempty"`
	Task    string                 `json:"task"` // the prompt, script or command, with its values
	Needs   map[string]settle.Need `json:"needs,omitempty"`
	// Commits are those that needs have landed, by need.
	Commits map[string]string `json:"commits,omitempty"`
	// Landing is the commit that waits to land; nil for a node that waits to start.
	Landing *schemas.RunWorkspace `json:"landing,omitempty"`
	// Given are the approvals that count.
	Given []schemas.Approval `json:"given,omitempty"`
}

// Gates lists the closed gates of a DAG that only wait for people. A DAG whose status says that it has none is not decided.
func Gates(in settle.In) []Gate {
	if in.Gone() || in.Broken() || !hasClosedGate(in) {
		return nil
	}
	f := decided(in)
	if f == nil {
		return nil
	}
	var out []Gate
	for i := range f.next {
		if f.next[i].Reason == settle.ReasonWaitsForApproval {
			out = append(out, f.gateView(int32(i)))
		}
	}
	return out
}

func hasClosedGate(in settle.In) bool {
	st, ok := in.Status().(*schemas.DAGStatus)
	if !ok {
		return false
	}
	for _, n := range st.Nodes.All() {
		if n.Reason == settle.ReasonWaitsForApproval {
			return true
		}
	}
	return false
}

func (f *fold) gateView(i int32) Gate {
	n := &f.p.Spec.Nodes[i]
	g := Gate{Node: n.Name, Digest: f.shown(i), Approve: f.approveOf(i), Agent: n.Agent, Task: f.task(i), Needs: f.results(i)}
	if f.heldBack(i) != "" {
		g.Landing = f.landing(i)
	}
	g.Given, _ = f.counting(i, g.Digest)
	for _, to := range f.p.Needs[i] {
		if c := f.landedCommit(to); c != "" {
			if g.Commits == nil {
				g.Commits = map[string]string{}
			}
			g.Commits[f.p.Spec.Nodes[to].Name] = c
		}
	}
	return g
}

// GateOf is the closed gate of a node; nil for any other node.
func GateOf(in settle.In, node string) *Gate {
	for _, g := range Gates(in) {
		if g.Node == node {
			return &g
		}
	}
	return nil
}

// ShownOf is the digest of what a closed gate, or the waiting task of a person, shows; "" for any other node.
func ShownOf(in settle.In, node string) string {
	if in.Gone() || in.Broken() || in.Status() == nil {
		return ""
	}
	f := decided(in)
	if f == nil {
		return ""
	}
	i, ok := f.p.Index[node]
	if !ok || f.next[i].Reason != settle.ReasonWaitsForApproval && f.next[i].Reason != settle.ReasonWaitsForPerson {
		return ""
	}
	return f.shown(i)
}

// Tasks are the prompts and commands of a DAG's nodes that have expressions in them, with their values, by node.
func Tasks(in settle.In) map[string]string {
	if in.Gone() || in.Broken() || in.Status() == nil {
		return nil
	}
	p := plan.Of(in.Object)
	f := decided(in)
	if f == nil || len(p.Texts) == 0 {
		return nil
	}
	out := make(map[string]string, len(p.Texts))
	for i := range p.Texts {
		out[p.Spec.Nodes[i].Name] = f.task(i)
	}
	return out
}
