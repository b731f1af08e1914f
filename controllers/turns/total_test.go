package turns

import (
	"testing"

	"reconcile.dev/reconcile/schemas"
)

func TestTotal(t *testing.T) {
	cost := 0.00542
	known := &schemas.Turn{Profile: "claude", Model: "m-1", SessionID: "s-1", CostUSD: &cost,
		Usage: &schemas.Usage{InputTokens: 1300, OutputTokens: 30, CachedInputTokens: 100}}
	unknown := &schemas.Turn{Profile: "copilot"}
	var all, none, one Total
	for _, turn := range []*schemas.Turn{known, nil, unknown, known} {
		all.Add(turn)
	}
	one.Add(unknown)
	for _, c := range [][2]string{
		{all.Tokens(), "2600 in, 60 out (1 of 3 turns unknown)"}, {all.Cost(), "$0.0108 (1 of 3 turns unknown)"},
		{one.Tokens(), "unknown"}, {one.Cost(), "unknown"}, {none.Tokens(), ""}, {none.Cost(), ""},
		{Line(known), "claude m-1, tokens 1300 in (100 cached), 30 out, cost $0.0054 by the agent, session s-1"},
		{Line(unknown), "copilot, tokens unknown, cost unknown"},
	} {
		if c[0] != c[1] {
			t.Errorf("%q, want %q", c[0], c[1])
		}
	}
}
