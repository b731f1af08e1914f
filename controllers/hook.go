package controllers

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// hookNode is the node name in the records of hooks: an agent started or ended work outside of reconcile.
const hookNode = "hook"

// NewHook makes the next hook record of an agent, as of now: outcome is OutcomeStarted or OutcomeDone, issue is 0 where
// the work is about none. Its key is agents/<agent>/hook-<16 hex digits>-<seq>; it must be written under the lock under
// which agent was read, so that no two records have the same.
func NewHook(agent *state.Entry, outcome string, issue int, now time.Time) schemas.Run {
	const shown = 16 // hex digits of the node's key, as in effectKey
	key := digest([]byte(agent.Name))
	seq := 1
	for _, r := range hooksOf(agent) {
		seq = max(seq, r.Seq+1)
	}
	at := schemas.NewTime(now)
	return schemas.Run{
		Key:     fmt.Sprintf("agents/%s/%s-%s-%d", agent.Name, hookNode, strings.TrimPrefix(key, keyPrefix)[:shown], seq),
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

// hooksOf lists the hook records of an agent's entry in the order in which they were written.
func hooksOf(agent *state.Entry) []*schemas.Run {
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
	all := hooksOf(agent)
	if len(all) == 0 {
		return nil
	}
	return all[len(all)-1]
}

// hooksInForce lists what an agent took up by its hooks and has not ended, oldest first.
func hooksInForce(agent *state.Entry) []*schemas.Run { return state.Unended(hooksOf(agent)) }

// Brief is what an agent must know when it takes up an issue, or ends its work on it. Each list is in the order of the
// ledgers.
type Brief struct {
	// Blocked are the agent's own blocking questions about the issue that are not settled: it cannot continue.
	Blocked []schemas.Clarification `json:"blocked"`
	// Answered are its questions about the issue that were answered, or resolved since.
	Answered []schemas.Clarification `json:"answered"`
	// Asked are the questions, about whatever issue, that wait for its answer.
	Asked []schemas.Clarification `json:"asked"`
	// Abandoned are the questions that it gave up when it started this work.
	Abandoned []schemas.Clarification `json:"abandoned,omitempty"`
}

// AboutIssue returns the titles and descriptions of the sessions of an issue.
func AboutIssue(t *state.Tree, issue int) string {
	var texts []string
	for _, e := range t.Entries(schemas.SessionKind.Name) {
		if s := schemas.SpecAs[*schemas.SessionSpec](e.Object); s != nil && s.Issue == issue && issue > 0 {
			texts = append(texts, s.Title, s.Description)
		}
	}
	return strings.TrimSpace(strings.Join(texts, "\n"))
}

// NewBrief gathers from the ledgers what an agent must know about an issue. Questions that were resolved before since
// are left out. left is what [LeftBehind] said before the agent took the issue up.
func NewBrief(t *state.Tree, agent string, issue int, since schemas.Time, left []schemas.Clarification) Brief {
	b := Brief{Blocked: []schemas.Clarification{}, Answered: []schemas.Clarification{}, Asked: []schemas.Clarification{},
		Abandoned: gaveUp(t, left)}
	for _, l := range t.Ledgers() {
		if l.Open == 0 && l.Issue != issue {
			continue
		}
		for _, c := range l.Records() {
			switch {
			case c.Open() && Orphaned(t, &c):
			case c.To == agent && c.Waiting() && Unroutable(t, &c) == "":
				b.Asked = append(b.Asked, c)
			case c.From == agent && l.Issue == issue:
				b.own(c, since)
			}
		}
	}
	return b
}

// LeftBehind lists the questions that an agent gives up when it starts work on an issue: the unanswered ones about
// other issues that it asked outside of DAGs.
func LeftBehind(t *state.Tree, agent string, issue int) []schemas.Clarification {
	var out []schemas.Clarification
	for _, e := range t.Entries(schemas.ClarificationRequestKind.Name) {
		spec, st := requestSpec(e), requestStatusOf(e)
		if spec == nil || spec.From != agent || spec.Issue == issue || st.Phase != schemas.ClarificationPending {
			continue
		}
		if _, _, asked := schemas.SplitRunKey(spec.Run); !asked {
			out = append(out, clarify.Record(e.Name, spec, st))
		}
	}
	return out
}

// gaveUp keeps the questions that are still unanswered.
func gaveUp(t *state.Tree, left []schemas.Clarification) []schemas.Clarification {
	return slices.DeleteFunc(left, func(c schemas.Clarification) bool {
		phase := requestStatusOf(t.Entry(requestRef(c.Request))).Phase
		return phase != schemas.ClarificationPending && phase != schemas.ClarificationAbandoned
	})
}

func (b *Brief) own(c schemas.Clarification, since schemas.Time) {
	switch {
	case c.Blocking && (c.Waiting() || c.Status == schemas.ClarificationEscalated):
		b.Blocked = append(b.Blocked, c)
	case c.Status == schemas.ClarificationAnswered,
		c.Status == schemas.ClarificationResolved && !c.ResolvedAt.Before(since.Time):
		b.Answered = append(b.Answered, c)
	}
}

// BlockedLine is the label of work that the clarification blocks (agentx-prd US-3.2).
func BlockedLine(c *schemas.Clarification) string {
	if c.Status == schemas.ClarificationEscalated {
		return fmt.Sprintf("BLOCKED: Clarification %s escalated, waits for a human", c.ID)
	}
	return fmt.Sprintf("BLOCKED: Clarification %s pending from %s", c.ID, c.To)
}
