package clarifications

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/readiness"
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
	j, digest, wrong := RequestsOf(in.World).judgeReply(in.Entry)
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

func replySpec(e *state.Entry) *schemas.ReplySpec { return state.SpecOf[*schemas.ReplySpec](e) }

// digestIn is the digest of the reply as it was taken.
func digestIn(st *schemas.ClarificationRequestStatus, reply string) string {
	i := slices.IndexFunc(st.Thread, func(t schemas.ThreadEntry) bool { return t.Source == fromReply+reply })
	return st.Thread[i].Digest
}

// Refusal says why a request with this status was never taken; "" for one that was, or that no run has looked at.
func Refusal(st *schemas.ClarificationRequestStatus) string {
	c := st.Condition(schemas.Ready)
	if st.ID == "" && c != nil && (c.Reason == settle.ReasonScopeViolation || st.Condition(schemas.Stalled) != nil) {
		return c.Message
	}
	return ""
}

// RefusalOf says why a request was never taken: its agent may not ask that, or its file is broken; "" for one that was, or that no
// run has looked at.
func RefusalOf(e *state.Entry) string { return Refusal(Status(e)) }

func (x *RequestIndex) outcomeOf(reply string) replyOutcome {
	x.lookups++
	if x.outcomes == nil && x.lookups > fewLookups {
		x.outcomes = map[string]replyOutcome{}
		x.eachOutcome(func(name string, in replyOutcome) { x.outcomes[name] = x.outcomes[name].and(in) })
	}
	if x.outcomes != nil {
		return x.outcomes[reply]
	}
	var h replyOutcome
	x.eachOutcome(func(name string, in replyOutcome) {
		if name == reply {
			h = h.and(in)
		}
	})
	return h
}

// eachOutcome goes through all replies that requests took or refused.
func (x *RequestIndex) eachOutcome(yield func(reply string, in replyOutcome)) {
	for _, e := range x.tree.Entries(schemas.ClarificationRequestKind.Name) {
		st := Status(e)
		for i := range st.Thread {
			if name, ok := strings.CutPrefix(st.Thread[i].Source, fromReply); ok {
				yield(name, replyOutcome{took: e.Name})
			}
		}
		for i := range st.Refused {
			yield(st.Refused[i].Name, replyOutcome{refused: e.Name})
		}
	}
}

func (h replyOutcome) and(o replyOutcome) replyOutcome {
	return replyOutcome{cmp.Or(o.took, h.took), cmp.Or(o.refused, h.refused)}
}

// repliesTo lists the replies to a request with that name and number, by name. Broken ones are not among them.
func (x *RequestIndex) repliesTo(name, id string) []*state.Entry {
	var out []*state.Entry
	for _, r := range x.tree.ReferrersOf(schemas.ClarificationRequestKind.Ref(name), schemas.ReplyKind.Name) {
		out = append(out, x.tree.Entry(r))
	}
	if id != "" {
		x.file()
		out = append(out, x.replies[id]...)
	}
	slices.SortFunc(out, func(a, b *state.Entry) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// takerOf is the name of the request that took the reply of that name; "" if none did yet.
func (x *RequestIndex) takerOf(reply string) string { return x.outcomeOf(reply).took }

// Took reports whether a request took the reply of that name.
func (x *RequestIndex) Took(reply string) bool { return x.takerOf(reply) != "" }

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

// repliesOf lists the replies to a request that no other one took.
func (w *Requests) repliesOf(e *state.Entry, id string) []clarify.Reply {
	var out []clarify.Reply
	for _, r := range w.Index.repliesTo(e.Name, id) {
		spec := replySpec(r)
		if by := w.Index.takerOf(r.Name); spec == nil || by != "" && by != e.Name {
			continue
		}
		from := w.Tree.Entry(schemas.AgentKind.Ref(spec.From))
		out = append(out, clarify.Reply{Name: r.Name, Digest: r.Object.Digest, Spec: spec,
			Agent: from != nil && !from.Gone()})
	}
	return out
}
