// Package readiness says how objects are by their statuses: ready, waiting, failed or invalid, and why. It has the columns that
// tables of several kinds show.
package readiness

import (
	"iter"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// StandingCount counts objects by how they stand.
type StandingCount struct {
	Ready   int `json:"ready"`
	Waiting int `json:"waiting"` // for someone, or for their turn, as they should
	Failed  int `json:"failed"`  // or stalled
	Invalid int `json:"invalid"`
}

// Total is the number of objects.
func (c StandingCount) Total() int { return c.Ready + c.Unready() }

// Unready is the number of those that are not ready.
func (c StandingCount) Unready() int { return c.Waiting + c.Failed + c.Invalid }

// Add adds the numbers of another count.
func (c *StandingCount) Add(o StandingCount) {
	c.Ready += o.Ready
	c.Waiting += o.Waiting
	c.Failed += o.Failed
	c.Invalid += o.Invalid
}

// Standing counts one object: exactly one field of the result is 1, or none for an object whose spec is gone.
func Standing(e *state.Entry) StandingCount {
	switch b := e.Brief(); {
	case e.Broken():
		return StandingCount{Invalid: 1}
	case e.Gone():
		return StandingCount{}
	case b.Stalled == schemas.True:
		return StandingCount{Failed: 1}
	case b.Ready == schemas.True || IsRefusedReply(e) || b.Ready == "" && !ExpectsStatus(e):
		return StandingCount{Ready: 1}
	}
	return StandingCount{Waiting: 1}
}

// ExpectsStatus reports whether an object has a status at all times. Replies and observations have one only while
// something is wrong with them, settings never.
func ExpectsStatus(e *state.Entry) bool { return e.Object == nil || e.Object.ExpectsStatus() }

// StandingByKind counts objects by kind. Kinds without objects are left out.
func StandingByKind(list iter.Seq[*state.Entry]) map[string]StandingCount {
	counts := map[string]StandingCount{}
	for e := range list {
		if is := Standing(e); is.Total() > 0 {
			is.Add(counts[e.Kind])
			counts[e.Kind] = is
		}
	}
	return counts
}

// StandingOf counts the objects that a selection is about by kind: dormant objects are ready, or wait as they should.
func StandingOf(t *state.Tree, s *settle.Selection) map[string]StandingCount {
	counts := StandingByKind(s.Active(t))
	if s != nil {
		return counts
	}
	for _, k := range settle.TableOf(t) {
		c := counts[k.Name]
		dormant, unready := t.CountDormant(k.Name)
		c.Add(StandingCount{Ready: dormant - unready, Waiting: unready})
		if c.Total() > 0 {
			counts[k.Name] = c
		}
	}
	return counts
}

// ConditionOf returns a condition of an object; nil if it has no such condition.
func ConditionOf(e *state.Entry, typ string) *schemas.Condition {
	if !e.HasStatus() {
		return nil
	}
	return e.Status().Base().Condition(typ)
}

// IsStalled reports whether the status of an object has the condition Stalled.
func IsStalled(e *state.Entry) bool { return e.Brief().Stalled == schemas.True }

// ReadyWord is True, False, Unknown before the first run, or "" where there is nothing to say.
func ReadyWord(e *state.Entry) string {
	switch c := ConditionOf(e, schemas.Ready); {
	case e.Broken():
		return string(schemas.False)
	case c != nil:
		return string(c.Status)
	case e.Gone() || !ExpectsStatus(e):
		return ""
	}
	return string(schemas.Unknown)
}

// PhaseWord is the phase of an object, or Invalid or Removed; "" without a phase.
func PhaseWord(e *state.Entry) string {
	switch {
	case e.Broken():
		return "Invalid"
	case e.Gone():
		return "Removed"
	case e.HasStatus():
		return e.Status().Base().Phase
	}
	return ""
}

// Because says in a line why an object is as it is; "" where there is nothing to say.
func Because(e *state.Entry) string {
	if e.Broken() {
		return e.Problems[0].Error()
	}
	c := ConditionOf(e, schemas.Ready)
	switch {
	case c == nil && ExpectsStatus(e) && !e.Gone():
		return "no run has recorded its status yet"
	case c == nil:
		return ""
	case c.Message == "":
		return c.Reason
	}
	return c.Reason + ": " + c.Message
}

// SinceWhen returns when the Ready condition of an object got its present status.
func SinceWhen(st schemas.Status) time.Time {
	if c := st.Base().Condition(schemas.Ready); c != nil {
		return c.LastTransitionTime.Time
	}
	return time.Time{}
}

func isReady(e *state.Entry) bool {
	if !e.HasStatus() {
		return !e.Broken()
	}
	return e.Brief().Ready == schemas.True
}

// IsRefusedReply reports whether an object is a reply that was refused: it is not ready, and nothing is left to do about it.
func IsRefusedReply(e *state.Entry) bool {
	if e.Object == nil || e.Object.ExpectsStatus() || !e.HasStatus() {
		return false
	}
	c := e.Status().Base().Condition(schemas.Ready)
	return c != nil && c.Reason == settle.ReasonRefused
}

// NodeEnded reports whether a node is in a final state.
func NodeEnded(s *schemas.NodeStatus) bool {
	switch s.State {
	case schemas.NodeSucceeded, schemas.NodeFailed, schemas.NodeSkipped, schemas.NodeCancelled:
		return true
	}
	return false
}

// NodeMet reports whether a need in this state lets its dependents start.
func NodeMet(s *schemas.NodeStatus) bool {
	return s.State == schemas.NodeSucceeded ||
		s.State == schemas.NodeSkipped && (s.Reason == settle.ReasonWhenFalse || s.Reason == settle.ReasonSkippedByAction)
}
