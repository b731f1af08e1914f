package state

import (
	"encoding/json"
	"slices"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/expand"
)

// The objects of a tree have their specs expanded: package expand makes nodes of parameters, matrices, called DAGs and the results of
// nodes. A tree without a DAG that expands does next to nothing for it.

// expandAll expands the DAGs of a new tree.
func (t *Tree) expandAll() {
	t.expansions = expansions{}
	shelf := t.shelves[schemas.DAGKind.Name]
	for _, e := range shelf {
		if expand.May(e.Object) {
			t.expansions.names = append(t.expansions.names, e.Name)
		}
	}
	t.expand(shelf, t.expansions.names)
}

// expandChanged expands the DAGs that entries, which replaced those of was, may have changed.
func (t *Tree) expandChanged(was *Tree, entries []*Entry) {
	t.expansions.anew = nil
	var names []string
	for _, e := range entries {
		isDAG := e.Kind == schemas.DAGKind.Name
		if !isDAG && (e.Kind != schemas.SessionKind.Name || len(t.expansions.names) == 0) {
			continue
		}
		old := was.loaded(e.Ref)
		same := old != nil && old.Object != nil && e.Object != nil && old.Object.Declared() == e.Object.Declared()
		switch {
		case isDAG && !same:
			t.noteExpanding(e)
			names = append(names, t.expansions.names...)
		case isDAG && slices.Contains(t.expansions.names, e.Name):
			names = append(names, e.Name)
		case !same:
			names = append(names, t.expansions.names...)
		}
	}
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	shelf := slices.Clone(t.shelves[schemas.DAGKind.Name])
	t.shelves[schemas.DAGKind.Name] = shelf
	t.expand(shelf, slices.Compact(names))
}

// noteExpanding keeps the list of the DAGs that may expand.
func (t *Tree) noteExpanding(e *Entry) {
	has, may := slices.Contains(t.expansions.names, e.Name), expand.May(e.Object)
	if has == may {
		return
	}
	rest := slices.DeleteFunc(slices.Clone(t.expansions.names), func(name string) bool { return name == e.Name })
	if may {
		rest = append(rest, e.Name)
	}
	t.expansions.names = rest
}

// expand expands DAGs of the shelf by name.
func (t *Tree) expand(shelf []*Entry, names []string) {
	for _, name := range names {
		i, ok := find(shelf, name)
		if !ok || shelf[i].Object == nil {
			continue
		}
		e, was := shelf[i], t.expansions.of[name]
		made := expand.Object(e.Object, was, t.world(e))
		if made != was {
			t.expansions.anew = append(t.expansions.anew, e.Ref)
		}
		if made != e.Object {
			next := *e
			next.Object = made
			shelf[i] = &next
		}
	}
	of := make(map[string]*schemas.Object, len(t.expansions.names))
	for _, name := range t.expansions.names {
		if i, ok := find(shelf, name); ok && shelf[i].Object != nil {
			of[name] = shelf[i].Object
		}
	}
	t.expansions.of = of
}

// world is what the expansion of an entry's object looks up.
func (t *Tree) world(e *Entry) expand.World {
	return expand.World{
		Object: func(ref schemas.Ref) *schemas.Object {
			if of := t.Entry(ref); of != nil {
				return of.Object
			}
			return nil
		},
		Result: func(node string) (json.RawMessage, bool) { return resultOf(e.Status(), node) },
	}
}

// resultOf returns what a node has left, if it has succeeded by the status.
func resultOf(s schemas.Status, node string) (json.RawMessage, bool) {
	n := schemas.NodesIn(s).Find(node)
	if n == nil || n.State != schemas.NodeSucceeded {
		return nil, false
	}
	return n.Result, true
}

// Expanded returns the DAGs that were expanded again when the tree was made from another one.
func (t *Tree) Expanded() []schemas.Ref { return t.expansions.anew }

// expanded returns an object with its spec expanded, by the files: for the inputs and outputs of its nodes.
func (m *model) expanded(ref schemas.Ref) *schemas.Object {
	o := m.written(ref)
	if !expand.May(o) {
		delete(m.expands, ref)
		return o
	}
	if m.expands == nil {
		m.expands = map[schemas.Ref]*schemas.Object{}
	}
	made := expand.Object(o, m.expands[ref], m.world(ref))
	m.expands[ref] = made
	return made
}

// world is what the expansion of an object looks up.
func (m *model) world(ref schemas.Ref) expand.World {
	return expand.World{Object: m.written, Result: func(node string) (json.RawMessage, bool) { return resultOf(m.statusOf(ref), node) }}
}

// statusOf returns the newest status of an object: the caller's, else that of the file; nil for none.
func (m *model) statusOf(ref schemas.Ref) schemas.Status {
	if m.callers != nil {
		if e := m.callers.Entry(ref); e != nil && e.HasStatus() {
			return e.Status()
		}
	}
	if s := m.slots[ref]; s != nil && s.status != nil {
		if st, ok := s.status.body.(*lazyStatus); ok {
			return st.get()
		}
	}
	return nil
}

// written returns an object of one valid file; nil without one.
func (m *model) written(ref schemas.Ref) *schemas.Object {
	if s := m.slots[ref]; s != nil && len(s.specs) == 1 {
		return s.specs[0].body.(*specBody).object
	}
	return nil
}

// touchExpanding touches the DAGs that are expanded with objects that changed, or with results that the caller has found since.
func (u *update) touchExpanding() {
	for ref, made := range u.model.expands {
		if u.model.slots[ref] != nil && !expand.Fresh(made, u.model.world(ref)) {
			u.touch(ref)
		}
	}
}
