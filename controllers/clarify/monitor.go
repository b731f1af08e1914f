package clarify

import (
	"fmt"
	"slices"
	"time"

	"reconcile.dev/reconcile/controllers/similar"
	"reconcile.dev/reconcile/schemas"
)

// Findings are the problems that Monitor finds among records, each in the order of the records.
type Findings struct {
	Stale      []schemas.Clarification // waiting for an answer beyond their time
	Stuck      []schemas.Clarification // going round in circles
	Deadlocked []schemas.Clarification // to give up, to break a cycle of waiting agents
}

// Monitor returns the findings about the clarification records of any number of issues: which are stale, stuck or
// deadlocked now. precedence is that of an agent, larger for the more downstream.
func Monitor(records []schemas.Clarification, precedence func(agent string) int, now time.Time) Findings {
	var f Findings
	orders := Orders(records, precedence)
	for i := range records {
		c := &records[i]
		switch c.Status {
		case schemas.ClarificationPending, schemas.ClarificationStale, schemas.ClarificationAnswered:
		default:
			continue
		}
		if c.Status == schemas.ClarificationStale || c.Waiting() && !now.Before(c.StaleAfter.Time) {
			f.Stale = append(f.Stale, *c)
		}
		order := orders[c.ID]
		if order != nil && order.Reason == schemas.EscalatedDeadlock {
			f.Deadlocked = append(f.Deadlocked, *c)
		}
		if order != nil && order.Reason == schemas.EscalatedStuck || similarCircles(c.Thread) {
			f.Stuck = append(f.Stuck, *c)
		}
	}
	return f
}

// Orders returns, by id, the orders to escalate questions because of other records: a deadlock, which is a cycle of
// blocking questions that wait for each other, or a question that reverses the direction of another one. If both apply,
// the deadlock is the reason.
func Orders(records []schemas.Clarification, precedence func(agent string) int) map[string]*Order {
	out := map[string]*Order{}
	for _, f := range turnFlips(records) {
		later, first := &records[f.later], &records[f.first]
		out[later.ID] = &Order{schemas.EscalatedStuck,
			fmt.Sprintf("it turns %s of %s to %s round, which is %s", first.ID, first.From, first.To, first.Status)}
	}
	var waits []Wait
	for i := range records {
		if c := &records[i]; c.Blocking && c.Waiting() {
			waits = append(waits, Wait{c.ID, c.From, c.To, c.Created, precedence(c.From)})
		}
	}
	for _, v := range rings(waits) {
		out[v.ID] = &Order{schemas.EscalatedDeadlock, ringMessage(v.Ring)}
	}
	return out
}

// flip is a pair of questions about one thing in opposite directions, by their places among the records.
type flip struct{ first, later int }

// talk is an issue and two agents, in either direction.
type talk struct {
	issue int
	a, b  string
}

// turnFlips finds the questions that a later one between the same agents reverses. The first one may be escalated, but not
// closed; the later one must not be escalated yet.
func turnFlips(records []schemas.Clarification) []flip {
	byTalk := map[talk][]int{}
	for i := range records {
		if records[i].Open() {
			key := talkOf(&records[i])
			byTalk[key] = append(byTalk[key], i)
		}
	}
	var out []flip
	for i := range records {
		c := &records[i]
		if !c.Open() || c.Status == schemas.ClarificationEscalated {
			continue
		}
		others := byTalk[talkOf(c)]
		if j := slices.IndexFunc(others, func(j int) bool { return turnsRound(c, &records[j]) }); j >= 0 {
			out = append(out, flip{others[j], i})
		}
	}
	return out
}

// turnsRound reports whether c asks back what first asked: after it, the other way, and about the same.
func turnsRound(c, first *schemas.Clarification) bool {
	if c.From != first.To || c.To != first.From || !after(c, first) || deadlock(c, first) {
		return false
	}
	return similar.OfWords(c.Topic, first.Topic) >= alike ||
		similar.OfWords(firstQuestion(c), firstQuestion(first)) >= alike
}

// deadlock reports whether two blocking questions wait for each other, or did until the first was given up for that: then
// [Rings] decides which one is escalated, and the other one stays open.
func deadlock(c, first *schemas.Clarification) bool {
	if !c.Blocking || !first.Blocking {
		return false
	}
	return c.Waiting() && first.Waiting() || first.Status == schemas.ClarificationEscalated &&
		slices.ContainsFunc(first.Thread, func(t schemas.ClarificationTurn) bool {
			return t.Type == schemas.TurnEscalation && reasonIn(t.Body) == schemas.EscalatedDeadlock
		})
}
