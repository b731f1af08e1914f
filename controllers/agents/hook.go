package agents

import (
	"cmp"
	"fmt"
	"time"

	"reconcile.dev/reconcile/controllers/keys"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// hookNode is the node name in the records of hooks: an agent started or ended work outside of reconcile.
const hookNode = "hook"

// NewHook makes the next hook record of an agent, as of now: outcome is OutcomeStarted or OutcomeDone, issue is 0 where
// the work is about none. Its key is agents/<agent>/hook-<16 hex digits>-<seq>; it must be written under the lock under
// which agent was read, so that no two records have the same.
func NewHook(agent *state.Entry, outcome string, issue int, now time.Time) schemas.Run {
	key := keys.Digest([]byte(agent.Name))
	seq := 1
	for _, r := range HooksOf(agent) {
		seq = max(seq, r.Seq+1)
	}
	at := schemas.NewTime(now)
	return schemas.Run{
		Key:     keys.OfEffect(schemas.AgentKind, agent.Name, hookNode, key, seq),
		Owner:   agent.Ref.String(),
		Node:    hookNode,
		Agent:   agent.Name,
		NodeKey: key,
		Seq:     seq,
		Outcome: outcome,
		Issue:   issue,

		StartedAt: at, FinishedAt: at,
	}
}

// HooksOf lists the hook records of an agent's entry in the order in which they were written.
func HooksOf(agent *state.Entry) []*schemas.Run {
	if agent == nil {
		return nil
	}
	var out []*schemas.Run
	for _, r := range agent.Runs() { // sorted by node, key and number
		if r.Node == hookNode {
			out = append(out, r)
		}
	}
	return out
}

// LastHook returns the latest hook record of an agent, or nil. The agent works on its issue while the outcome is
// OutcomeStarted.
func LastHook(agent *state.Entry) *schemas.Run {
	all := HooksOf(agent)
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1]
}

// HooksInForce lists what an agent took up by its hooks and has not ended, oldest first.
func HooksInForce(agent *state.Entry) []*schemas.Run { return state.Unended(HooksOf(agent)) }

// hookMessage is the line of an agent's history for work that it reported by a hook.
func hookMessage(r *schemas.Run) string {
	msg := "hook: took up "
	if r.Outcome == schemas.OutcomeDone {
		msg = "hook: ended "
	}
	msg += cmp.Or(r.For, "work")
	if r.Issue > 0 {
		msg += fmt.Sprintf(" on issue %d", r.Issue)
	}
	if r.Message != "" {
		msg += ": " + r.Message
	}
	return msg
}

// hookSubject names what a hook's record is about: the item that was taken, else the issue.
func hookSubject(r *schemas.Run) string {
	switch {
	case r.For != "":
		return r.For
	case r.Issue > 0:
		return fmt.Sprintf("issue %d", r.Issue)
	}
	return "something outside of reconcile"
}
