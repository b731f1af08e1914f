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
	made := expand.Object(o, m.expands[ref], expand.World{Object: m.written, Result: func(node string) (json.RawMessage, bool) {
		if f := m.slots[ref].status; f != nil {
			if st, ok := f.body.(*lazyStatus); ok {
				return resultOf(st.get(), node)
			}
		}
		return nil, false
	}})
	m.expands[ref] = made
	return made
}

// written returns an object of one valid file; nil if there is none.
func (m *model) written(ref schemas.Ref) *schemas.Object {
	if s := m.slots[ref]; s != nil && len(s.specs) == 1 {
		return s.specs[0].body.(*specBody).object
	}
	return nil
}

// touchExpanding touches the DAGs that are expanded with objects which are touched.
func (u *update) touchExpanding() {
	if len(u.model.expands) == 0 {
		return
	}
	for ref := range u.touched {
		if ref.Kind == schemas.SessionKind.Name || ref.Kind == schemas.DAGKind.Name {
			for of := range u.model.expands {
				u.touch(of)
			}
			return
		}
	}
}
