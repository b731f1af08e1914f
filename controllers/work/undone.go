package work

import (
	"cmp"
	"fmt"

	"reconcile.dev/reconcile/controllers/dags/plan"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Undone says why a node that was asked for has ended without success, and the command that has it run; "" for any other node.
func Undone(e *state.Entry, node string) string {
	st, ok := e.Status().(*schemas.DAGStatus)
	if !ok || e.Object == nil {
		return ""
	}
	s := st.Nodes.Of(node)
	if !readiness.NodeEnded(&s) || readiness.NodeMet(&s) {
		return ""
	}
	command := "reconcile retry " + e.Ref.String()
	if s.Reason != settle.ReasonDAGTimeout {
		command += " " + cause(plan.Of(e.Object).Spec, st, node)
	}
	return fmt.Sprintf("%s/%s is %s: %s; go on with: %s", e.Ref, node, s.State, cmp.Or(s.Message, s.Reason), command)
}

// cause is the node that a retry has to be about for another one to run: the one whose failure ended it, else itself.
func cause(spec *schemas.DAGSpec, st *schemas.DAGStatus, node string) string {
	s, n := st.Nodes.Of(node), spec.Node(node)
	switch {
	case s.State == schemas.NodeFailed:
	case s.Reason == settle.ReasonFailFast:
		for i := range spec.Nodes {
			if other := &spec.Nodes[i]; st.Nodes.Of(other.Name).State == schemas.NodeFailed && !other.FailsAlone() {
				return other.Name
			}
		}
	case n != nil && (s.Reason == settle.ReasonNeedFailed || s.Reason == settle.ReasonNeedCancelled):
		for _, need := range n.Needs {
			if of := st.Nodes.Of(need); readiness.NodeEnded(&of) && !readiness.NodeMet(&of) {
				return cause(spec, st, need)
			}
		}
	}
	return node
}
