// Package budgets counts what runs of agents use, and says what budgets leave for others.
//
// What counts are records: of nodes for their session, DAG, node and agent, and of questions for the agent that answers; both for
// the day, in UTC, on which they ended. A run that is under way holds what its claim reserves, until its record settles it.
// What a record does not know counts as unknown, never as zero: tokens as the record estimates them, else as what the run had reserved,
// requests as one.
package budgets

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// use is an amount of each measure. Cost is in billionths of a dollar, so that sums do not depend on their order.
type use struct {
	turns, requests, tokens, cost int64
	time                          time.Duration
	// unknownTokens and unknownCost count the turns of which these are not known, estimated those whose tokens are estimated.
	unknownTokens, unknownCost, estimated int64
}

const dollar = 1e9

func toCost(usd float64) int64 { return int64(math.Round(min(usd, 1e9) * dollar)) }

// add adds o n times; n may be -1.
func (u *use) add(o use, n int64) {
	u.turns += n * o.turns
	u.requests += n * o.requests
	u.tokens += n * o.tokens
	u.cost += n * o.cost
	u.time += time.Duration(n) * o.time
	u.unknownTokens += n * o.unknownTokens
	u.unknownCost += n * o.unknownCost
	u.estimated += n * o.estimated
}

// One run counts no more than this, so that sums stay numbers whatever records claim.
const (
	mostRequests = 1e9
	mostTokens   = 1e12
	mostTime     = 7 * 24 * time.Hour
)

// ofRun is what a recorded run used. A run that was never started used nothing. Of the time it used no more than it had reserved, at which it was
// ended: more is that of a clock that was set, or of a machine that slept.
func ofRun(r *schemas.Run, turnTokens int64) use {
	if r.StartedAt.IsZero() {
		return use{}
	}
	u := use{turns: 1, requests: 1, time: max(r.FinishedAt.Sub(r.StartedAt.Time), 0)}
	u.time = min(u.time, mostTime, cmp.Or(r.Budget.Limit(), mostTime))
	t := r.Turn
	if tokens, ok := t.Tokens(); ok {
		u.requests, u.tokens = min(max(t.Usage.Requests, 1), mostRequests), min(tokens, mostTokens)
	} else if t != nil && t.Estimate != nil {
		u.estimated, u.tokens = 1, min(max(t.Estimate.InputTokens+t.Estimate.OutputTokens, 1), mostTokens)
	} else {
		u.unknownTokens = 1
		if u.tokens = turnTokens; r.Budget != nil && r.Budget.Tokens > 0 {
			u.tokens = r.Budget.Tokens
		}
	}
	if t != nil && t.CostUSD != nil {
		u.cost = toCost(min(max(*t.CostUSD, 0), schemas.MaxCostUSD))
	} else {
		u.unknownCost = 1
	}
	return u
}

// ofBudget is what a budget reserves.
func ofBudget(b *schemas.Budget) use {
	if b == nil {
		return use{}
	}
	return use{turns: 1, requests: b.Requests, tokens: b.Tokens, cost: toCost(b.CostUSD), time: b.Limit()}
}

// measure is one of the four measures of a budget.
type measure struct {
	field string // of the budget
	of    func(use) int64
	limit func(*schemas.Budget) int64 // 0: none
	set   func(*schemas.Budget, int64)
	text  func(used, limit int64) string
}

var measures = []measure{
	{"requests", func(u use) int64 { return u.requests }, func(b *schemas.Budget) int64 { return b.Requests },
		func(b *schemas.Budget, n int64) { b.Requests = n },
		func(used, limit int64) string { return fmt.Sprintf("%d of %d requests", used, limit) }},
	{"tokens", func(u use) int64 { return u.tokens }, func(b *schemas.Budget) int64 { return b.Tokens },
		func(b *schemas.Budget, n int64) { b.Tokens = n },
		func(used, limit int64) string { return fmt.Sprintf("%d of %d tokens", used, limit) }},
	{"costUSD", func(u use) int64 { return u.cost }, func(b *schemas.Budget) int64 { return toCost(b.CostUSD) },
		func(b *schemas.Budget, n int64) { b.CostUSD = float64(n) / dollar },
		func(used, limit int64) string { return dollars(used) + " of " + dollars(limit) }},
	{"time", func(u use) int64 { return int64(u.time) }, func(b *schemas.Budget) int64 { return int64(b.Limit()) },
		func(b *schemas.Budget, n int64) { d := schemas.Duration(n); b.Time = &d },
		func(used, limit int64) string {
			return fmt.Sprintf("%s of %s", schemas.Duration(used).Std().Round(time.Second/10), schemas.Duration(limit))
		}},
}

func dollars(n int64) string {
	text := strconv.FormatFloat(float64(n)/dollar, 'f', 4, 64)
	if whole, ok := strings.CutSuffix(text, "00"); ok {
		text = whole
	}
	return "$" + text
}

// unknowns says what of a sum is not known; "" if nothing that its measure needs is missing.
func (u use) unknowns(a *settle.Allowance) string {
	var parts []string
	if u.unknownTokens > 0 && a.Limit.Tokens > 0 {
		parts = append(parts, fmt.Sprintf("the tokens of %d of %d turns are unknown, and counted as reserved", u.unknownTokens, u.turns))
	}
	if u.estimated > 0 && a.Limit.Tokens > 0 {
		parts = append(parts, fmt.Sprintf("the tokens of %d of %d turns are estimated", u.estimated, u.turns))
	}
	if u.unknownCost > 0 && a.Limit.CostUSD > 0 {
		parts = append(parts, fmt.Sprintf("the cost of %d of %d turns is unknown, and not counted", u.unknownCost, u.turns))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}
