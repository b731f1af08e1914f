package readiness

import (
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// ColumnsOf returns the columns of the table of a kind, after the name.
func ColumnsOf(k *settle.Kind) []settle.Column {
	if k.Columns == nil {
		return []settle.Column{Ready, Phase}
	}
	return k.Columns
}

// Columns that several kinds have.
var (
	Ready = settle.Column{Head: "READY", Text: ReadyWord}
	Phase = settle.Column{Head: "PHASE", Text: PhaseWord}
	Since = settle.Column{Head: "SINCE", Time: func(e *state.Entry) schemas.Time {
		if c := ConditionOf(e, schemas.Ready); c != nil {
			return c.LastTransitionTime
		}
		return schemas.Time{}
	}}
)

// OfSpec is a column about the spec of an object.
func OfSpec[S schemas.Spec](head string, text func(S) string) settle.Column {
	return settle.Column{Head: head, Text: func(e *state.Entry) string {
		if e.Object == nil {
			return ""
		}
		return text(schemas.SpecAs[S](e.Object))
	}}
}

// OfStatus is a column about its status.
func OfStatus[S schemas.Status](head string, text func(S) string) settle.Column {
	return settle.Column{Head: head, Text: func(e *state.Entry) string {
		if s, ok := e.Status().(S); ok {
			return text(s)
		}
		return ""
	}}
}

// TimeOf is a column with a time of its status.
func TimeOf[S schemas.Status](head string, at func(S) schemas.Time) settle.Column {
	return settle.Column{Head: head, Time: func(e *state.Entry) schemas.Time {
		if s, ok := e.Status().(S); ok {
			return at(s)
		}
		return schemas.Time{}
	}}
}
