package clarifications

import (
	"crypto/sha256"
	"encoding/hex"

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
