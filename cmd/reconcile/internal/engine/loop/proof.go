package loop

import (
	"context"
	"fmt"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// identify implements settle.Decider.Identify.
func (s *run) identify(action schemas.Ref) (settle.Identity, bool) {
	id, known := s.identities[action]
	return id, known
}

// noteUnproved keeps track of the actions that wait for the proof of who wrote them.
func (s *run) noteUnproved(ref schemas.Ref) {
	if ref.Kind != schemas.ActionKind.Name {
		return
	}
	e := s.tree.Entry(ref)
	if e == nil || e.Object == nil || !e.HasStatus() {
		delete(s.unproved, ref)
		return
	}
	if c := e.Status().Base().Condition(schemas.Ready); c == nil || c.Reason != settle.ReasonUnproved {
		delete(s.unproved, ref)
		return
	}
	s.unproved[ref] = true
}

// checkProofs looks who wrote the actions that wait for the proof. It reports whether an answer changed: then the decision is made
// again.
func (s *run) checkProofs(ctx context.Context) (changed bool, err error) {
	if s.loop.Identify == nil {
		return false, nil
	}
	for _, ref := range sortedRefs(s.unproved) {
		e := s.tree.Entry(ref)
		if e == nil || e.Object == nil {
			continue
		}
		id, err := s.loop.Identify(ctx, s.tree.Settings(), e.Object)
		if err != nil {
			return false, fmt.Errorf("find out who wrote %s: %w", e.Object.Path, err)
		}
		if was, known := s.identities[ref]; known && was == id {
			continue
		}
		s.identities[ref], changed = id, true
		s.touch(ref)
	}
	return changed, nil
}

// touchUnproved has the actions looked at again that waited for a proof, or for the text of an issue, when the run began.
func (s *run) touchUnproved() {
	for _, e := range s.tree.Active(schemas.ActionKind.Name) {
		if e.HasStatus() && e.Brief().Phase == schemas.ActionPending {
			s.noteUnproved(e.Ref)
			s.noteUnread(e.Ref)
		}
	}
}
