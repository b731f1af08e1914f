package controllers

import (
	"fmt"
	"slices"

	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// decideReply reports a reply that cannot be read, was refused, or was edited. Its request accepts it.
func decideReply(in In) Out {
	switch {
	case in.Gone():
		return Out{}
	case in.Broken():
		return decideRecord[schemas.ReplyStatus](in)
	}
	j, digest, wrong := requestsOf(in.World).judgeReply(in.Entry)
	if !wrong {
		return Out{}
	}
	st := &schemas.ReplyStatus{Common: common(in.Status())}
	j.settle(&st.Common, digest, in.Now)
	return Out{Status: st}
}

// judgeReply reports a problem of a reply, and the digest of the text with the problem.
func (w *requests) judgeReply(e *state.Entry) (j judgement, digest string, wrong bool) {
	digest = e.Object.Digest
	to := w.index.request(replySpec(e).Clarification)
	if by := w.index.takerOf(e.Name); by != "" {
		to = w.tree.Entry(requestRef(by))
	}
	if to == nil {
		return judgement{class: waiting, reason: ReasonTargetNotFound,
			message: clarify.NewNotFound(replySpec(e).Clarification).Error() + "; the reply waits until there is one"}, digest, true
	}
	st := w.requestStatus(to)
	standing, why := clarify.StandingOf(st, clarify.Reply{Name: e.Name, Digest: digest, Spec: replySpec(e)})
	switch {
	case standing == clarify.Refused:
		return judgement{class: waiting, reason: ReasonRefused, message: why}, digest, true
	case standing == clarify.Edited:
		return immutable("", fmt.Sprintf("a reply cannot be changed once %s has taken it; put the text back, and write a new "+
			"one", to.Ref)), digestIn(st, e.Name), true
	case standing == clarify.Unheard:
		return judgement{class: waiting, reason: ReasonPending,
			message: fmt.Sprintf("waits for %s, which cannot be decided as it stands", to.Ref)}, digest, true
	}
	return judgement{}, digest, false
}

// digestIn is the digest of the reply as it was taken.
func digestIn(st *schemas.ClarificationRequestStatus, reply string) string {
	i := slices.IndexFunc(st.Thread, func(t schemas.ThreadEntry) bool { return t.Source == fromReply+reply })
	return st.Thread[i].Digest
}
