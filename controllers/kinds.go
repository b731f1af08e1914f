package controllers

import (
	"reconcile.dev/reconcile/controllers/actions"
	"reconcile.dev/reconcile/controllers/agents"
	"reconcile.dev/reconcile/controllers/clarifications"
	"reconcile.dev/reconcile/controllers/dags"
	"reconcile.dev/reconcile/controllers/mirror"
	"reconcile.dev/reconcile/controllers/observations"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/sessions"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Kinds is the table of kinds. A new kind is a file in schemas, a package of its own, and a row here.
var Kinds = settle.Table{
	sessions.Kind,
	agents.Kind,
	agents.WorkflowKind,
	dags.Kind,
	clarifications.Kind,
	clarifications.ReplyKind,
	observations.Kind,
	actions.Kind,
	{Kind: schemas.SettingsKind, Affects: func(c *settle.Change) { c.AddAll() }},
}

// Schemas returns the schema half of [Kinds].
func Schemas() schemas.Kinds { return Kinds.Schemas() }

// MirrorOptions adds to the options of the mirror what the table of a tree says.
func MirrorOptions(t *state.Tree, o mirror.Options) mirror.Options {
	o.Why = readiness.Why
	for _, k := range settle.TableOf(t) {
		if k.Mirror != nil {
			o.Kinds = append(o.Kinds, mirror.Mirrored{Kind: k.Name, Projector: k.Mirror})
		}
	}
	return o
}

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
