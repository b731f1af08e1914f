package state

import (
	"encoding/json"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/expand"
)

// expanded returns an object with its spec expanded, as far as the files say: for the inputs and outputs of its nodes.
func (m *model) expanded(ref schemas.Ref) *schemas.Object {
	o := m.validObject(ref)
	if !expand.May(o) {
		delete(m.expands, ref)
		return o
	}
	if m.expands == nil {
		m.expands = map[schemas.Ref]bool{}
	}
	m.expands[ref] = true
	return expand.Object(o, nil, expand.World{Object: m.validObject, Result: func(node string) (json.RawMessage, bool) {
		if f := m.slots[ref].status; f != nil {
			if st, ok := f.body.(*lazyStatus); ok {
				return resultOf(st.get(), node)
			}
		}
		return nil, false
	}})
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
