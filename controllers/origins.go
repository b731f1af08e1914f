package controllers

import (
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Origins groups the sound objects of a tree by the origin of their files. Those of users are left out.
func Origins(t *state.Tree) map[settle.Origin][]*schemas.Object {
	out := map[settle.Origin][]*schemas.Object{}
	for _, k := range settle.TableOf(t) {
		if k.Origin == nil {
			continue
		}
		of := k.Origin(t)
		for _, e := range t.Entries(k.Name) {
			if e.Object == nil {
				continue
			}
			if is := of(e); is != settle.OriginUser {
				out[is] = append(out[is], e.Object)
			}
		}
	}
	return out
}
