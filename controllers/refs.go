package controllers

import (
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

func sessionRef(name string) schemas.Ref {
	return schemas.Ref{Kind: schemas.SessionKind.Name, Name: name}
}

func dagRef(name string) schemas.Ref { return schemas.Ref{Kind: schemas.DAGKind.Name, Name: name} }

func agentRef(name string) schemas.Ref { return schemas.Ref{Kind: schemas.AgentKind.Name, Name: name} }

// sessionSpec returns the usable spec of a session's entry, or nil.
func sessionSpec(e *state.Entry) *schemas.SessionSpec {
	if e == nil {
		return nil
	}
	return schemas.SpecAs[*schemas.SessionSpec](e.Object)
}

func later(a, b schemas.Time) schemas.Time {
	if b.After(a.Time) {
		return b
	}
	return a
}
