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
	// UnknownUsage and UnknownCost count the turns of which tokens or cost are not known.
	UnknownUsage int `json:"unknownUsage,omitempty"`
	UnknownCost  int `json:"unknownCost,omitempty"`
}

// Add adds a turn; nil is none.
func (t *Total) Add(turn *schemas.Turn) {
	if turn == nil {
		return
	}
	t.Turns++
	if u := turn.Usage; u != nil {
		t.InputTokens, t.OutputTokens = t.InputTokens+u.InputTokens, t.OutputTokens+u.OutputTokens
	} else {
		t.UnknownUsage++
	}
	if turn.CostUSD != nil {
		t.CostUSD += *turn.CostUSD
	} else {
		t.UnknownCost++
	}
}

// Tokens is the sum of tokens in words: "1300 in, 30 out".
func (t *Total) Tokens() string {
	return known(fmt.Sprintf("%d in, %d out", t.InputTokens, t.OutputTokens), t.Turns, t.UnknownUsage)
}

// Cost is the sum of the costs in words: "$0.0054".
func (t *Total) Cost() string { return known(dollars(t.CostUSD), t.Turns, t.UnknownCost) }

// known says of how many of several turns a sum is not known.
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
		tokens = fmt.Sprintf("%d in (%d cached), %d out", u.InputTokens, u.CachedInputTokens, u.OutputTokens)
	}
	add("tokens %s", tokens)
	add("cost %s", sum.Cost())
	add("session %s", t.SessionID)
	return strings.Join(parts, ", ")
}
