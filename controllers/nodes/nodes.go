// Package nodes describes the nodes of a DAG by their object's status and records: attempts, missing and kept outputs,
// interrupted runs.
package nodes

import (
	"bytes"
	"slices"
	"strings"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// NodeNames lists the nodes of a DAG as declared, or, if its spec cannot be read, as in its status. Of any other object it
// lists the nodes of its runs: round_1 and round_1_again of a clarification request.
func NodeNames(e *state.Entry) []string {
	var names []string
	if dag := schemas.SpecAs[*schemas.DAGSpec](e.Object); dag != nil {
		for _, n := range dag.Nodes {
			names = append(names, n.Name)
		}
		return names
	}
	if st, ok := e.Status().(*schemas.DAGStatus); ok {
		return slices.Concat(st.Layers...)
	}
	for _, r := range e.Runs() {
		names = append(names, r.Node)
	}
	for _, c := range e.Claims {
		names = append(names, c.Node)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Interrupted lists the nodes of a DAG that are said to run and that no process runs; unless the tree is attended by a process, also
// those that are said to wait for a place. A process that attends it writes the statuses a moment after the records of runs.
func Interrupted(e *state.Entry, attended bool) []string {
	if b := e.Brief(); b.Running == 0 && (attended || b.Phase != schemas.DAGRunning && b.Phase != schemas.DAGPending) {
		return nil
	}
	st, ok := e.Status().(*schemas.DAGStatus)
	if !ok {
		return nil
	}
	var names []string
	for name, n := range st.Nodes.All() {
		runs := func(c state.Claim) bool { return c.Node == name }
		ran := func(r *schemas.Run) bool { return r.Node == name && !r.StartedAt.Before(n.StartedAt.Time) }
		left := n.State == schemas.NodeRunning && !(attended && slices.ContainsFunc(e.Runs(), ran)) || !attended && n.Reason == settle.ReasonWaitsForPlace
		if left && !slices.ContainsFunc(e.Claims, runs) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// NotHere tells which declared outputs are missing of nodes that have succeeded, by node; nil if none is.
func NotHere(e *state.Entry) map[string][]string {
	st, ok := e.Status().(*schemas.DAGStatus)
	if !ok || len(e.Missing) == 0 {
		return nil
	}
	var out map[string][]string
	for node, m := range e.Missing {
		if st.Nodes.Of(node).State != schemas.NodeSucceeded {
			continue
		}
		if out == nil {
			out = map[string][]string{}
		}
		out[node] = m.Files
	}
	return out
}

// Recorded returns the recorded descriptions of an output of a node that has succeeded: one description for each of its successes
// under the present key that has one. None: only that the file exists can be checked.
func Recorded(e *state.Entry, node, file string) []schemas.Output {
	st, ok := e.Status().(*schemas.DAGStatus)
	if !ok || st.Nodes.Of(node).State != schemas.NodeSucceeded {
		return nil
	}
	var out []schemas.Output
	for _, r := range e.Runs() {
		if r.Node == node && r.NodeKey == st.Nodes.Of(node).Key && r.Outcome == schemas.OutcomeSucceeded {
			found, _ := r.OutputsAt([]string{file})
			out = append(out, found...)
		}
	}
	return out
}

// Kept lists the recorded successes of which the outputs are to be kept in git, in the order of their keys. unsure reports
// of the key of a run whether the tree does not tell, since the spec cannot be read.
func Kept(t *state.Tree) (runs []*schemas.Run, unsure func(key string) bool) {
	broken := map[string]bool{}
	for _, e := range t.Active(schemas.DAGKind.Name) {
		if e.Broken() {
			broken[e.Name] = true
			continue
		}
		if e.Object == nil || !bytes.Contains(e.Object.Canonical(), []byte(`"keep":true`)) {
			continue // most need not be decoded for it
		}
		keeps := map[string]bool{}
		spec := schemas.SpecAs[*schemas.DAGSpec](e.Object)
		for i := range spec.Nodes {
			keeps[spec.Nodes[i].Name] = spec.Nodes[i].Outputs.Keep
		}
		for _, r := range e.Runs() {
			if keeps[r.Node] && r.Outcome == schemas.OutcomeSucceeded && len(r.Outputs) > 0 {
				runs = append(runs, r)
			}
		}
	}
	slices.SortFunc(runs, func(a, b *schemas.Run) int { return strings.Compare(a.Key, b.Key) })
	return runs, func(key string) bool {
		dag, _, ok := schemas.SplitRunKey(key)
		return ok && broken[dag]
	}
}
