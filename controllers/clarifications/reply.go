package clarifications

import (
	"fmt"
	"slices"

	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// decideReply reports a reply that cannot be read, was refused, or was edited. Its request accepts it.
func decideReply(in settle.In) settle.Out {
	switch {
	case in.Gone():
		return settle.Out{}
	case in.Broken():
		return settle.DecideRecord[schemas.ReplyStatus](in)
	}
	j, digest, wrong := Of(in.World).judgeReply(in.Entry)
	if !wrong {
		return settle.Out{}
	}
	st := &schemas.ReplyStatus{Common: settle.Common(in.Status())}
	j.Settle(&st.Common, digest, in.Now)
	return settle.Out{Status: st}
}

// judgeReply reports a problem of a reply, and the digest of the text with the problem.
func (w *Requests) judgeReply(e *state.Entry) (j settle.Judgement, digest string, wrong bool) {
	digest = e.Object.Digest
	to := w.Index.request(replySpec(e).Clarification)
	if by := w.Index.takerOf(e.Name); by != "" {
		to = w.Tree.Entry(schemas.ClarificationRequestKind.Ref(by))
	}
	if to == nil {
		return settle.Judgement{Class: settle.ClassWaiting, Reason: settle.ReasonTargetNotFound,
			Message: clarify.NewNotFound(replySpec(e).Clarification).Error() + "; the reply waits until there is one"}, digest, true
	}
	st := settle.StatusAs[schemas.ClarificationRequestStatus](w.world, to)
	standing, why := clarify.StandingOf(st, clarify.Reply{Name: e.Name, Digest: digest, Spec: replySpec(e)})
	switch {
	case standing == clarify.Refused:
		return settle.Judgement{Class: settle.ClassWaiting, Reason: settle.ReasonRefused, Message: why}, digest, true
	case standing == clarify.Edited:
		return settle.JudgeImmutable("", fmt.Sprintf("a reply cannot be changed once %s has taken it; put the text back, and write a new "+
			"one", to.Ref)), digestIn(st, e.Name), true
	case standing == clarify.Unheard:
		return settle.Judgement{Class: settle.ClassWaiting, Reason: settle.ReasonPending,
			Message: fmt.Sprintf("waits for %s, which cannot be decided as it stands", to.Ref)}, digest, true
	}
	return settle.Judgement{}, digest, false
}

// digestIn is the digest of the reply as it was taken.
func digestIn(st *schemas.ClarificationRequestStatus, reply string) string {
	i := slices.IndexFunc(st.Thread, func(t schemas.ThreadEntry) bool { return t.Source == fromReply+reply })
	return st.Thread[i].Digest
}
