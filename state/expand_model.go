package state

import (
	"encoding/json"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/expand"
)

// expanded returns an object with its spec expanded, as far as the files say: for the inputs and outputs of its nodes.
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

// written returns an object of one valid file; nil if there is none.
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
