package actions

import (
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Kind is the row of kind Action.
var Kind = settle.Kind{Kind: schemas.ActionKind, Decide: decide, Columns: columns,
	DependsOn: []string{schemas.SessionKind.Name, schemas.DAGKind.Name, schemas.WorkflowKind.Name, schemas.PlanChangeKind.Name}, Affects: affects,
	After: addStarts, Origin: origin, Retired: retired}

var columns = []settle.Column{
	readiness.Ready, readiness.Phase,
	readiness.OfSpec("VERB", func(s *schemas.ActionSpec) string { return s.Verb }),
	readiness.OfSpec("TARGET", func(s *schemas.ActionSpec) string { return strings.TrimSpace(s.Target + " " + s.Node) }),
	readiness.OfSpec("BY", func(s *schemas.ActionSpec) string { return schemas.Acting(s.By, s.Proof) }),
	readiness.Since,
}

// origin: a comment, or a command, once the action was applied.
func origin(*state.Tree) func(*state.Entry) settle.Origin {
	return func(e *state.Entry) settle.Origin {
		b := e.Brief()
		switch {
		case settle.FromComment(e.Object):
			return settle.OriginRecord
		case b.Phase == schemas.ActionApplied && b.ObservedDigest == e.Object.Digest:
			return settle.OriginOnce
		}
		return settle.OriginUser
	}
}

// retired is when an action was applied.
func retired(t *state.Tree) func(*state.Entry) time.Time {
	return func(e *state.Entry) time.Time {
		if st, ok := e.Status().(*schemas.ActionStatus); ok && st.Delivery == nil && !refused(t, e) {
			if spec := schemas.SpecAs[*schemas.ActionSpec](e.Object); spec != nil && schemas.IsMessage(spec.Verb) {
				return time.Time{} // its text is still to arrive
			}
		}
		if b := e.Brief(); b.Phase != schemas.ActionApplied || b.ObservedDigest != e.Object.Digest {
			return time.Time{}
		}
		return readiness.SinceWhen(e.Status())
	}
}

// refused reports whether the target of an action has refused it.
func refused(t *state.Tree, e *state.Entry) bool {
	spec := schemas.SpecAs[*schemas.ActionSpec](e.Object)
	if spec == nil {
		return false
	}
	ref, err := spec.TargetRef()
	to := t.Entry(ref)
	return err == nil && to != nil && slices.ContainsFunc(schemas.AppliedTo(to.Status()), func(a schemas.AppliedAction) bool {
		return a.Name == e.Name && a.Refused != ""
	})
}
