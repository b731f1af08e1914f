package slash

import (
	"errors"
	"path"
	"strings"

	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Standing returns the state of the specs of a comment, in a tree that a run has decided: HandledAccepted once all are
// in force, HandledRefused with the reply to the author if one cannot be, "" while a run has yet to decide. Most are
// refused before they are written, but another program may be faster. A spec that was removed since counts as accepted.
func Standing(t *state.Tree, h *schemas.MirrorHandled) (outcome, reply string) {
	for _, p := range h.Specs {
		ref, ok := refOf(p)
		e := t.Entry(ref)
		if !ok || e == nil || e.Gone() {
			continue
		}
		decided, err := standing(t, e)
		switch {
		case err != nil:
			return schemas.HandledRefused, refusalText([]string{err.Error()})
		case !decided:
			return "", ""
		}
	}
	return schemas.HandledAccepted, ""
}

// refOf is the object of a path that [Decide] made.
func refOf(p string) (schemas.Ref, bool) {
	k, ok := controllers.Schemas().Find(path.Base(path.Dir(p)))
	return schemas.Ref{Kind: k.Name, Name: strings.TrimSuffix(path.Base(p), ".yaml")}, ok
}

// standing is [Standing] for one spec.
func standing(t *state.Tree, e *state.Entry) (decided bool, why error) {
	if e.Broken() {
		return true, errors.New(codeText(e.Problems[0].Message))
	}
	switch spec := e.Object.Spec().(type) {
	case *schemas.ActionSpec:
		return e.HasStatus() && e.Status().Base().Phase == schemas.ActionApplied, nil
	case *schemas.ReplySpec:
		return replyStanding(t, e, spec)
	}
	return true, nil
}

func replyStanding(t *state.Tree, e *state.Entry, spec *schemas.ReplySpec) (decided bool, why error) {
	for _, request := range t.Entries(schemas.ClarificationRequestKind.Name) {
		st, ok := request.Status().(*schemas.ClarificationRequestStatus)
		if !ok || request.Name != spec.Clarification && st.ID != spec.Clarification {
			continue
		}
		s, message := clarify.StandingOf(st, clarify.Reply{Name: e.Name, Digest: e.Object.Digest, Spec: spec})
		if s == clarify.Refused {
			return true, errors.New(codeText(message))
		}
		return s != clarify.Unheard, nil
	}
	return false, nil
}
