package turns

import (
	"fmt"
	"strconv"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// Total sums up what recorded turns used. Unknown values are counted, never added as zero.
type Total struct {
	Turns        int     `json:"turns"`
	InputTokens  int64   `json:"inputTokens"`
	OutputTokens int64   `json:"outputTokens"`
	CostUSD      float64 `json:"costUSD"`
	// EstimatedTokens are those of the Estimated turns, whose tokens are not known; the numbers above are without them.
	EstimatedTokens int64 `json:"estimatedTokens,omitempty"`
	Estimated       int   `json:"estimated,omitempty"`
	// UnknownUsage and UnknownCost count the turns of which tokens or cost are neither known nor estimated.
	UnknownUsage int `json:"unknownUsage,omitempty"`
	UnknownCost  int `json:"unknownCost,omitempty"`
	// Requests are those that the metering proxy counted, of Metered turns. The tokens of the Uncounted ones are not known.
	Requests  int64 `json:"requests,omitempty"`
	Uncounted int64 `json:"uncounted,omitempty"`
	Metered   int   `json:"metered,omitempty"`
	// ByPrices is the part of the cost that the table of prices says; agents report the rest.
	ByPrices float64 `json:"byPrices,omitempty"`
}

// Add adds a turn; nil has no effect.
func (t *Total) Add(turn *schemas.Turn) {
	if turn == nil {
		return
	}
	t.Turns++
	if _, known := turn.Tokens(); !known && turn.Estimate != nil {
		t.Estimated++
		t.EstimatedTokens += turn.Estimate.InputTokens + turn.Estimate.OutputTokens
	} else if u := turn.Usage; u != nil {
		t.InputTokens, t.OutputTokens = t.InputTokens+u.InputTokens, t.OutputTokens+u.OutputTokens
		t.Uncounted += u.Uncounted
		if turn.UsageFrom == schemas.UsageFromProxy {
			t.Requests, t.Metered = t.Requests+u.Requests, t.Metered+1
		}
	} else {
		t.UnknownUsage++
	}
	if turn.CostUSD != nil {
		cost := min(*turn.CostUSD, schemas.MaxCostUSD)
		t.CostUSD += cost
		if turn.CostFrom == schemas.CostFromPrices {
			t.ByPrices += cost
		}
	} else {
		t.UnknownCost++
	}
}

// Tokens is the sum of tokens in words: "1300 in, 30 out", or "about 80" by estimate.
func (t *Total) Tokens() string {
	about := fmt.Sprintf("about %d", t.EstimatedTokens)
	switch {
	case t.Estimated == 0:
	case t.Estimated == t.Turns:
		return about + " (estimated)"
	case t.Estimated+t.UnknownUsage == t.Turns:
		return known(about+" (estimated)", t.Turns, t.UnknownUsage)
	default:
		about = fmt.Sprintf(", %s more in %d of %d turns (estimated)", about, t.Estimated, t.Turns)
		return known(fmt.Sprintf("%d in, %d out%s%s", t.InputTokens, t.OutputTokens, uncounted(t.Uncounted), about), t.Turns, t.UnknownUsage)
	}
	return known(fmt.Sprintf("%d in, %d out%s", t.InputTokens, t.OutputTokens, uncounted(t.Uncounted)), t.Turns, t.UnknownUsage)
}

// uncounted says that tokens are without those of some requests.
func uncounted(n int64) string {
	if n == 0 {
		return ""
	}
	return ", " + counted(n) + " not counted"
}

func counted(requests int64) string {
	if requests == 1 {
		return "1 request"
	}
	return fmt.Sprintf("%d requests", requests)
}

// Counted says who counted: "3 requests by the proxy", "by the agent", or both; "" if no one did.
func (t *Total) Counted() string {
	var by []string
	if t.Metered > 0 {
		by = append(by, counted(t.Requests)+" by the proxy")
	}
	if t.Turns > t.Metered+t.UnknownUsage+t.Estimated {
		by = append(by, "by the agent")
	}
	return strings.Join(by, ", ")
}

// Cost is the sum of the costs in words: "$0.0054".
func (t *Total) Cost() string { return known(dollars(t.CostUSD), t.Turns, t.UnknownCost) }

// CostBy is the sum of the costs, and who says it: "$0.0054 by prices".
func (t *Total) CostBy() string {
	const rounding = 1e-9
	by := ""
	switch {
	case t.UnknownCost == t.Turns:
	case t.ByPrices == 0 && t.CostUSD > rounding:
		by = " by the agent"
	case t.CostUSD-t.ByPrices > rounding:
		by = ", " + dollars(t.ByPrices) + " of it by prices"
	case t.ByPrices > 0:
		by = " by prices"
	}
	return known(dollars(t.CostUSD)+by, t.Turns, t.UnknownCost)
}

// SessionCost returns what a turn cost, by what its session cost so far and by the record of the turn that it resumes; nil for none.
// An agent that has begun to count again reports less than before.
func SessionCost(session *float64, before *schemas.Turn) *float64 {
	if session == nil || before == nil {
		return session
	}
	earlier := before.SessionCostUSD
	if earlier == nil && before.CostFrom == schemas.CostFromAgent {
		earlier = before.CostUSD // records of earlier versions have the session's
	}
	if earlier == nil || *earlier > *session {
		return session
	}
	cost := *session - *earlier
	return &cost
}

// known says for how many of several turns a sum is unknown.
func known(sum string, turns, unknown int) string {
	switch {
	case turns == 0:
		return ""
	case unknown == turns:
		return "unknown"
	case unknown > 0:
		return fmt.Sprintf("%s (%d of %d turns unknown)", sum, unknown, turns)
	}
	return sum
}

func dollars(c float64) string {
	digits := 4
	if c >= 100 {
		digits = 2
	}
	return "$" + strconv.FormatFloat(c, 'f', digits, 64)
}

// Context describes the use of an agent's context: "96000 of 100000 tokens (96 %)"; "" if it is not known.
func Context(t *schemas.Turn) string {
	if t == nil || t.Usage == nil || t.Usage.ContextWindow <= 0 {
		return ""
	}
	u := t.Usage
	return fmt.Sprintf("%d of %d tokens (%d %%)", u.ContextUsed, u.ContextWindow, int64(100*float64(u.ContextUsed)/float64(u.ContextWindow)))
}

// Line describes one turn: agent, model, tokens, cost and session.
func Line(t *schemas.Turn) string {
	var sum Total
	sum.Add(t)
	var parts []string
	add := func(format, value string) {
		if value != "" {
			parts = append(parts, fmt.Sprintf(format, value))
		}
	}
	add("%s", strings.TrimSpace(t.Profile+" "+t.Model))
	tokens := sum.Tokens()
	if u := t.Usage; u != nil && u.CachedInputTokens > 0 {
		tokens = fmt.Sprintf("%d in (%d cached), %d out%s", u.InputTokens, u.CachedInputTokens, u.OutputTokens, uncounted(u.Uncounted))
	}
	add("tokens %s", tokens)
	if sum.Metered > 0 {
		add("%s", sum.Counted())
	}
	add("cost %s", sum.CostBy())
	add("session %s", t.SessionID)
	return strings.Join(parts, ", ")
}
