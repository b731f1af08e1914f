package clarifications

import (
	"time"

	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// origin: an agent's run or a ledger asked, or a command, once the question has its number.
func origin(*state.Tree) func(*state.Entry) settle.Origin {
	return func(e *state.Entry) settle.Origin {
		spec, st := Spec(e), Status(e)
		switch {
		case spec.Run+spec.Imported != "":
			return settle.OriginRecord
		case st.ID != "" && st.ObservedDigest == e.Object.Digest:
			return settle.OriginCommand
		}
		return settle.OriginUser
	}
}

// replyOrigin: a comment, or a command, once the question has accepted or refused the reply.
func replyOrigin(t *state.Tree) func(*state.Entry) settle.Origin {
	index := NewIndex(t)
	return func(e *state.Entry) settle.Origin {
		if settle.FromComment(e.Object) {
			return settle.OriginRecord
		}
		spec := replySpec(e)
		to := index.request(spec.Clarification)
		if to == nil || Spec(to) == nil || Status(to).ID == "" {
			return settle.OriginUser
		}
		switch is, _ := clarify.StandingOf(Status(to), clarify.Reply{Name: e.Name, Digest: e.Object.Digest, Spec: spec}); is {
		case clarify.Accepted, clarify.Refused:
			return settle.OriginCommand
		}
		return settle.OriginUser
	}
}

// replyRetired is when the thread of a reply ended.
func replyRetired(t *state.Tree) func(*state.Entry) time.Time {
	index := NewIndex(t)
	return func(e *state.Entry) time.Time {
		if e.HasStatus() && !readiness.IsRefusedReply(e) {
			return time.Time{}
		}
		request := index.request(schemas.TextIn(e.Object.Canonical(), "clarification"))
		if request == nil || request.Broken() {
			return time.Time{}
		}
		switch st := Status(request); st.Phase {
		case schemas.ClarificationResolved:
			return st.ResolvedAt.Time
		case schemas.ClarificationAbandoned:
			return readiness.SinceWhen(st)
		}
		return time.Time{}
	}
}
