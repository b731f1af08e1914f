package clarifications

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/shorten"
	"reconcile.dev/reconcile/state"
)

// SpecOfRun is the request that a run's question becomes.
func SpecOfRun(dag *state.Entry, run *schemas.Run, issue int) *schemas.ClarificationRequestSpec {
	a := run.Asks
	if a == nil {
		a = new(schemas.Ask)
	}
	return &schemas.ClarificationRequestSpec{Issue: issue, From: run.Agent, To: a.To, Topic: a.Topic, Question: a.Question,
		Blocking: a.Blocking, Artifacts: a.Artifacts, Run: run.Key}
}

// SpecName is the name of the spec that a run's record calls for: <owner>-<node>-<6 hex digits of the run's key>.
func SpecName(owner string, run *schemas.Run) string { return NameFor(owner+"-"+run.Node, run.Key) }

// NameFor is head, as much of it as fits, and six hex digits of the digest of key.
func NameFor(head, key string) string {
	const digits, most = 6, 63
	sum := sha256.Sum256([]byte(key))
	tail := "-" + hex.EncodeToString(sum[:])[:digits]
	return head[:min(len(head), most-len(tail))] + tail
}

// SpecOfRecord is the request for a question of another program: its first turn, else its topic. What is longer than a
// request may be is cut; the thread keeps all of it.
func SpecOfRecord(c *schemas.Clarification, issue int) *schemas.ClarificationRequestSpec {
	const topic, question = 200, 2000 // characters
	spec := &schemas.ClarificationRequestSpec{Issue: issue, From: c.From, To: c.To, Topic: shorten.Text(c.Topic, topic),
		Question: shorten.Text(c.Topic, question), Blocking: c.Blocking, Imported: c.ID}
	if len(c.Thread) > 0 && c.Thread[0].Type == schemas.TurnQuestion {
		spec.Question = shorten.Text(c.Thread[0].Body, question)
	}
	return spec
}

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
