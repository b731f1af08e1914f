package controllers

import (
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// dagStatus is the status of a DAG now; nil if there is none.
func dagStatus(w *World, e *state.Entry) *schemas.DAGStatus {
	st, _ := w.Status(e).(*schemas.DAGStatus)
	return st
}

// issueOf is the number of the issue that a question is about, or that a DAG serves: its own, else its session's, else 0.
func issueOf(t *state.Tree, dag *state.Entry) int {
	if q := requestSpec(dag); q != nil {
		return q.Issue
	}
	spec := schemas.SpecAs[*schemas.DAGSpec](dag.Object)
	if spec == nil {
		return 0
	}
	if spec.Issue > 0 {
		return spec.Issue
	}
	if s := sessionSpec(t.Entry(sessionRef(spec.Session))); s != nil {
		return s.Issue
	}
	return 0
}

func sessionRef(name string) schemas.Ref {
	return schemas.Ref{Kind: schemas.SessionKind.Name, Name: name}
}

func dagRef(name string) schemas.Ref { return schemas.Ref{Kind: schemas.DAGKind.Name, Name: name} }

func agentRef(name string) schemas.Ref { return schemas.Ref{Kind: schemas.AgentKind.Name, Name: name} }

// sessionSpec returns the spec of a session's entry; nil when there is none that can be used.
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
