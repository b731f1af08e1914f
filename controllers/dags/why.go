package dags

import (
	"fmt"
	"slices"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// why names the nodes that keep a DAG from being done, and describes what its session waits for.
func why(e *state.Entry, t *state.Tree) []string {
	var out []string
	if st, ok := e.Status().(*schemas.DAGStatus); ok {
		out = whyNodes(e, st)
	}
	return append(out, whySession(e, t)...)
}

// whySession says what a DAG's session waits for.
func whySession(e *state.Entry, t *state.Tree) []string {
	spec := schemas.SpecAs[*schemas.DAGSpec](e.Object)
	if spec == nil {
		return nil
	}
	s := t.Entry(schemas.SessionKind.Ref(spec.Session))
	if s == nil || !s.HasStatus() || s.Status().Base().Phase == schemas.SessionActive {
		return nil
	}
	c := s.Status().Base().Condition(schemas.Ready)
	if c == nil || s.Brief().Phase == schemas.SessionFailed {
		return nil
	}
	return []string{fmt.Sprintf("%s is %s: %s", s.Ref, s.Brief().Phase, c.Message)}
}

// whyNodes lists the nodes that keep the DAG from being done, the most telling first, at most ten.
func whyNodes(e *state.Entry, st *schemas.DAGStatus) []string {
	const most = 10
	order := []string{schemas.NodeFailed, schemas.NodeBlocked, schemas.NodeRunning, schemas.NodeQueued,
		schemas.NodeCancelled}
	var out []string
	for _, want := range order {
		for _, layer := range st.Layers {
			for _, name := range layer {
				if n := st.Nodes[name]; n.State == want {
					out = append(out, whyNode(name, n))
				}
			}
		}
	}
	if n := len(out) - most; n > 0 {
		out = append(slices.Clip(out[:most]), "and "+schemas.Count(n, "node")+" more")
	}
	return out
}

func whyNode(name string, n schemas.NodeStatus) string {
	line := fmt.Sprintf("%s is %s", name, n.State)
	if n.Message != "" {
		line += ": " + n.Message
	}
	if !n.RetryAt.IsZero() {
		line += " at " + n.RetryAt.Format(time.RFC3339)
	}
	return line
}
