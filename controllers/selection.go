package controllers

import (
	"iter"
	"slices"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Selection is the part of a tree that a run performs: a DAG, or some of its nodes with all that they need. The questions
// that these nodes ask belong to it. Nil selects everything.
type Selection struct {
	DAG string
	// Nodes are those that were asked for; none: all of the DAG.
	Nodes []string
}

// In returns what tells whether a node of an object of the tree is selected; of requests, the node does not matter.
func (s *Selection) In(t *state.Tree) func(owner schemas.Ref, node string) bool {
	return s.in(TableOf(t), t)
}

func (s *Selection) in(table Table, t *state.Tree) func(owner schemas.Ref, node string) bool {
	if s == nil {
		return func(schemas.Ref, string) bool { return true }
	}
	needed := s.needed(t)
	return func(owner schemas.Ref, node string) bool {
		k, e := table.Row(owner.Kind), t.Entry(owner)
		if k == nil || k.PartOf == nil || e == nil {
			return false
		}
		dag, of := k.PartOf(e, node)
		return dag == s.DAG && needed(of)
	}
}

// nodeOfDAG is [Kind.PartOf] for DAGs.
func nodeOfDAG(e *state.Entry, node string) (dag, of string) { return e.Name, node }

// askingNode is [Kind.PartOf] for requests: they belong to the node that asks.
func askingNode(e *state.Entry, _ string) (dag, node string) {
	if spec := requestSpec(e); spec != nil {
		dag, node, _ = schemas.SplitRunKey(spec.Run)
	}
	return dag, node
}

// needed returns whether a node of the DAG is selected, or needed by a selected one.
func (s *Selection) needed(t *state.Tree) func(node string) bool {
	if len(s.Nodes) == 0 {
		return func(string) bool { return true }
	}
	e := t.Entry(dagRef(s.DAG))
	if e == nil || e.Object == nil {
		return func(string) bool { return false }
	}
	p := planOf(e.Object)
	var todo []int32
	for _, name := range s.Nodes {
		if i, ok := p.index[name]; ok {
			todo = append(todo, i)
		}
	}
	in := make([]bool, len(p.needs))
	for len(todo) > 0 {
		i := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if !in[i] {
			in[i] = true
			todo = append(todo, p.needs[i]...)
		}
	}
	return func(node string) bool {
		i, ok := p.index[node]
		return ok && in[i]
	}
}

// Works reports whether a selected part of an object runs or will run, possibly after a delay.
func (s *Selection) Works(t *state.Tree, ref schemas.Ref) bool {
	e := t.Entry(ref)
	if s == nil || e == nil {
		return s == nil
	}
	in := s.In(t)
	st, ok := e.Status().(*schemas.DAGStatus)
	if !ok {
		return in(ref, "")
	}
	for name, n := range st.Nodes {
		if (n.State == schemas.NodeRunning || n.State == schemas.NodeQueued) && in(ref, name) {
			return true
		}
	}
	return false
}

// Entries are the objects that a selection is about, by kind and name: its DAG, what that refers to (the session, the
// agents), and the questions of its nodes.
func (s *Selection) Entries(t *state.Tree) iter.Seq[*state.Entry] {
	about := func(schemas.Ref) bool { return true }
	if s != nil {
		in := s.In(t)
		refs := []schemas.Ref{dagRef(s.DAG)}
		if e := t.Entry(refs[0]); e != nil && e.Object != nil {
			for _, r := range e.Object.Refs {
				refs = append(refs, r.To)
			}
		}
		about = func(ref schemas.Ref) bool {
			return slices.Contains(refs, ref) || in(ref, "")
		}
	}
	return func(yield func(*state.Entry) bool) {
		for _, kind := range t.Kinds() {
			for _, e := range t.Entries(kind) {
				if about(e.Ref) && !yield(e) {
					return
				}
			}
		}
	}
}

// Active are the Entries without dormant ones, if everything is selected: dormant objects are ready.
func (s *Selection) Active(t *state.Tree) iter.Seq[*state.Entry] {
	if s != nil {
		return s.Entries(t)
	}
	return func(yield func(*state.Entry) bool) {
		for _, kind := range t.Kinds() {
			for _, e := range t.Active(kind) {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// stalls reports whether a stalled object keeps a selected part from success: a node that is not selected does not.
func (s *Selection) stalls(t *state.Tree, e *state.Entry) bool {
	if s == nil {
		return IsStalled(e)
	}
	st, ok := e.Status().(*schemas.DAGStatus)
	if !ok {
		return e.Kind != schemas.SessionKind.Name && IsStalled(e) // a session is told by its DAGs
	}
	in := s.In(t)
	stalled := IsStalled(e)
	for name, n := range st.Nodes {
		if (n.State == schemas.NodeFailed || stalled && hasEnded(&n) && !met(&n)) && in(e.Ref, name) {
			return true
		}
	}
	return false
}
