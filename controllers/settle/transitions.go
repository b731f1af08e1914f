package settle

import (
	"slices"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Events lists the transitions between two entries of one object of the tree; either may be nil.
func Events(t *state.Tree, before, after *state.Entry) []Event {
	old, now := StatusIn(before), StatusIn(after)
	if old == nil && now == nil {
		return nil
	}
	var out []Event
	if now != nil {
		if k := RowOf(t, after.Kind); k != nil && k.Events != nil {
			out = k.Events(before, after)
		}
	}
	if e, ok := budgetTransition(after, old, now); ok {
		out = append(out, e)
	}
	described := slices.ContainsFunc(out, func(e Event) bool { return e.Node == "" })
	if e, ok := objectEvent(before, after, old, now); ok && (!described || e.Warning) {
		out = append(out, e)
	}
	return out
}

// budgetTransition warns, once, that a budget of the object is low.
func budgetTransition(after *state.Entry, old, now schemas.Status) (Event, bool) {
	if now == nil {
		return Event{}, false
	}
	c := now.Base().Condition(budgetLow)
	if c == nil || old != nil && old.Base().Condition(budgetLow) != nil {
		return Event{}, false
	}
	phase := now.Base().Phase
	return Event{Ref: after.Ref, From: phase, To: phase, Time: c.LastTransitionTime, Reason: c.Reason, Message: c.Message, Warning: true}, true
}

// objectEvent is the transition of the object itself: another phase, or another reason for being ready or not.
func objectEvent(before, after *state.Entry, old, now schemas.Status) (Event, bool) {
	if now == nil {
		return Event{Ref: before.Ref, From: old.Base().Phase, Reason: "Removed", Message: "its spec is gone"}, true
	}
	base := now.Base()
	e := Event{Ref: after.Ref, To: base.Phase, Warning: base.Condition(schemas.Stalled) != nil}
	c := base.Condition(schemas.Ready)
	if c == nil {
		return e, false
	}
	e.Time, e.Reason, e.Message = c.LastTransitionTime, c.Reason, c.Message
	e.Warning = e.Warning || c.Reason == ReasonRefused || c.Reason == ReasonScopeViolation
	if old == nil {
		return e, true
	}
	e.From = old.Base().Phase
	was := old.Base().Condition(schemas.Ready)
	if was == nil || was.Status == c.Status {
		e.Time = schemas.Time{} // the condition's time is that of an earlier change
	}
	same := e.From == e.To && was != nil && was.Status == c.Status && was.Reason == c.Reason
	return e, !same
}

// StatusIn returns the status of an entry, which may be nil.
func StatusIn(e *state.Entry) schemas.Status {
	if e == nil {
		return nil
	}
	return e.Status()
}
