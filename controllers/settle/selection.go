package settle

import (
	"iter"
	"slices"
	"strings"

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
		if change := handoffOf(t, e); change != nil {
			to, _ := change.TargetRef()
			dag, of = to.Name, change.Node
		}
		return dag == s.DAG && needed(of)
	}
}

// handoffOf is the request for a hand-off that a DAG answers; nil for any other DAG. The node that is handed over waits for it.
func handoffOf(t *state.Tree, e *state.Entry) *schemas.PlanChangeSpec {
	if e.Kind != schemas.DAGKind.Name {
		return nil
	}
	spec := state.SpecOf[*schemas.DAGSpec](e)
	if spec == nil || spec.Answers == "" {
		return nil
	}
	change := state.SpecOf[*schemas.PlanChangeSpec](t.Entry(schemas.PlanChangeKind.Ref(spec.Answers)))
	if change == nil || change.Change != schemas.ChangeHandoff {
		return nil
	}
	return change
}

// needed returns whether a node of the DAG is selected, or needed by a selected one.
func (s *Selection) needed(t *state.Tree) func(node string) bool {
	if len(s.Nodes) == 0 {
		return func(string) bool { return true }
	}
	spec := state.SpecOf[*schemas.DAGSpec](t.Entry(schemas.DAGKind.Ref(s.DAG)))
	if spec == nil {
		return func(string) bool { return false }
	}
	needs := make(map[string][]string, len(spec.Nodes))
	for i := range spec.Nodes {
		needs[spec.Nodes[i].Name] = spec.Nodes[i].Needs
	}
	in := map[string]bool{}
	for todo := slices.Clone(s.Nodes); len(todo) > 0; {
		node := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if of, ok := needs[node]; ok && !in[node] {
			in[node] = true
			todo = append(todo, of...)
		}
	}
	return func(node string) bool { return in[node] }
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
	for name, n := range st.Nodes.All() {
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
		refs := []schemas.Ref{schemas.DAGKind.Ref(s.DAG)}
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

// Unrested are the Active, and with them the first of the dormant objects that wait, as many as most, by kind and name.
func (s *Selection) Unrested(t *state.Tree, most int) iter.Seq[*state.Entry] {
	if s != nil {
		return s.Entries(t)
	}
	return func(yield func(*state.Entry) bool) {
		for _, kind := range t.Kinds() {
			entries := t.Active(kind)
			if _, waiting := t.CountDormant(kind); waiting > 0 {
				entries = slices.Clone(entries)
				for o := range t.Dormant(kind) {
					if most == 0 || waiting == 0 {
						break
					}
					if o.Unready() {
						entries = append(entries, t.Entry(o.Ref))
						most, waiting = most-1, waiting-1
					}
				}
				slices.SortFunc(entries, func(a, b *state.Entry) int { return strings.Compare(a.Name, b.Name) })
			}
			for _, e := range entries {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// Active are the Entries without dormant ones, if everything is selected: dormant objects are ready, or wait as they should.
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
