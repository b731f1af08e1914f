package readiness

import (
	"slices"

	"reconcile.dev/reconcile/controllers/settle"
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

// Verdict judges the objects of a selection, and of its DAG the selected nodes. If everything is selected, files that belong
// to no object count, too.
func Verdict(t *state.Tree, s *settle.Selection) Exit {
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
		if e.Brief().StalledReason == settle.ReasonInvalidSpec {
			return ExitInvalid
		}
		if stalls(t, s, e) {
			verdict = ExitStalled
		}
	}
	return verdict
}

// Counts counts the objects of each kind, in the order of the table.
func Counts(t *state.Tree) []state.Count {
	standing := StandingOf(t, nil)
	var out []state.Count
	for _, k := range settle.TableOf(t) {
		if n := standing[k.Name]; n.Total() > 0 {
			out = append(out, state.Count{Kind: k.Name, Ready: n.Ready, Total: n.Total()})
		}
	}
	return out
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
	if k := settle.RowOf(t, e.Kind); k != nil && k.Why != nil {
		out = append(out, k.Why(e, t)...)
	}
	return out
}

// isOptional reports whether a DAG goes on without a node that failed.
func isOptional(e *state.Entry, node string) bool {
	spec := state.SpecOf[*schemas.DAGSpec](e)
	n := (*schemas.Node)(nil)
	if spec != nil {
		n = spec.Node(node)
	}
	return n != nil && n.FailsAlone()
}

// stalls reports whether a stalled object keeps a selected part from success: a node that is not selected does not.
func stalls(t *state.Tree, s *settle.Selection, e *state.Entry) bool {
	if s == nil {
		return IsStalled(e)
	}
	st, ok := e.Status().(*schemas.DAGStatus)
	if !ok {
		return e.Kind != schemas.SessionKind.Name && IsStalled(e) // a session is told by its DAGs
	}
	in := s.In(t)
	stalled := IsStalled(e)
	for name, n := range st.Nodes.All() {
		if (n.State == schemas.NodeFailed && !isOptional(e, name) || stalled && NodeEnded(n) && !NodeMet(n)) && in(e.Ref, name) {
			return true
		}
	}
	return false
}
