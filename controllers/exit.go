package controllers

import (
	"fmt"
	"slices"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Exit is the part of the exit code that the tree decides.
type Exit int

// The codes of architecture.md section 6 that say how the objects are.
const (
	ExitReady   Exit = 0 // everything is ready, or waits for someone as it should
	ExitInvalid Exit = 3 // some spec is invalid
	ExitStalled Exit = 4 // some object failed or is stalled
)

// Verdict judges the statuses and problems of a tree.
func Verdict(t *state.Tree) Exit { return (*Selection)(nil).Verdict(t) }

// Verdict judges the objects of a selection, and of its DAG the selected nodes. If everything is selected, files that belong
// to no object count, too.
func (s *Selection) Verdict(t *state.Tree) Exit {
	if s == nil && slices.ContainsFunc(t.Problems(), func(p schemas.Problem) bool { return p.Severity == schemas.Error }) {
		return ExitInvalid
	}
	verdict := ExitReady
	for e := range s.Active(t) {
		switch {
		case e.Broken():
			return ExitInvalid
		case !e.HasStatus():
			continue
		}
		if e.Brief().StalledReason == ReasonInvalidSpec {
			return ExitInvalid
		}
		if s.stalls(t, e) {
			verdict = ExitStalled
		}
	}
	return verdict
}

// Counts counts the objects of each kind, in the order of the table.
func Counts(t *state.Tree) []state.Count {
	standing := (*Selection)(nil).Standing(t)
	var out []state.Count
	for _, k := range TableOf(t) {
		if n := standing[k.Name]; n.Total() > 0 {
			out = append(out, state.Count{Kind: k.Name, Ready: n.Ready, Total: n.Total()})
		}
	}
	return out
}

// isRefusedReply reports whether an object is a reply that was refused: it is not ready, and nothing is left to do about it.
func isRefusedReply(e *state.Entry) bool {
	if e.Object == nil || e.Object.ExpectsStatus() || !e.HasStatus() {
		return false
	}
	c := e.Status().Base().Condition(schemas.Ready)
	return c != nil && c.Reason == ReasonRefused
}

func isReady(e *state.Entry) bool {
	if !e.HasStatus() {
		return !e.Broken()
	}
	return e.Brief().Ready == schemas.True
}

// Why explains, a line each, why an object is not ready; nothing if it is ready.
func Why(e *state.Entry, t *state.Tree) []string {
	var out []string
	for _, p := range e.Problems {
		out = append(out, p.Error())
	}
	if !e.HasStatus() || isReady(e) {
		return out
	}
	if c := e.Status().Base().Condition(schemas.Ready); c != nil {
		line := c.Reason + ": " + c.Message
		if t := e.Status().Base().Condition(schemas.Stalled); t != nil {
			line += " (nothing will change by itself)"
		}
		out = append(out, line)
	}
	if k := TableOf(t).Row(e.Kind); k != nil && k.Why != nil {
		out = append(out, k.Why(e, t)...)
	}
	return out
}

// whyDAG names the nodes that keep a DAG from being done, and describes what its session waits for.
func whyDAG(e *state.Entry, t *state.Tree) []string {
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
	s := t.Entry(sessionRef(spec.Session))
	if s == nil || !s.HasStatus() || s.Status().Base().Phase == schemas.SessionActive {
		return nil
	}
	c := s.Status().Base().Condition(schemas.Ready)
	if c == nil || phaseOf(s) == schemas.SessionFailed {
		return nil
	}
	return []string{fmt.Sprintf("%s is %s: %s", s.Ref, phaseOf(s), c.Message)}
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
