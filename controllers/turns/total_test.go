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
	estimated := &schemas.Turn{Profile: "copilot", Usage: &schemas.Usage{Requests: 1}, Estimate: &schemas.Usage{InputTokens: 50, OutputTokens: 7}}
	var all, none, one, guess, guesses, mixed Total
	guess.Add(estimated)
	for _, turn := range []*schemas.Turn{estimated, estimated, unknown} {
		guesses.Add(turn)
	}
	for _, turn := range []*schemas.Turn{known, estimated, unknown} {
		mixed.Add(turn)
	}
	for _, turn := range []*schemas.Turn{known, nil, unknown, known} {
		all.Add(turn)
	}
	one.Add(unknown)
	for _, c := range [][2]string{
		{all.Tokens(), "2600 in, 60 out (1 of 3 turns unknown)"}, {all.Cost(), "$0.0108 (1 of 3 turns unknown)"},
		{guess.Tokens(), "about 57 (estimated)"}, {guess.Counted(), ""}, {mixed.Counted(), "by the agent"},
		{guesses.Tokens(), "about 114 (estimated) (1 of 3 turns unknown)"},
		{mixed.Tokens(), "1300 in, 30 out, about 57 more in 1 of 3 turns (estimated) (1 of 3 turns unknown)"},
		{one.Tokens(), "unknown"}, {one.Cost(), "unknown"}, {none.Tokens(), ""}, {none.Cost(), ""},
		{Line(known), "claude m-1, tokens 1300 in (100 cached), 30 out, cost $0.0054 by the agent, session s-1"},
		{Line(unknown), "copilot, tokens unknown, cost unknown"},
	} {
		if c[0] != c[1] {
			t.Errorf("%q, want %q", c[0], c[1])
		}
	}
}

// TestCostsHaveASum: records of claims that are no costs, of earlier versions, have a sum that JSON has.
func TestCostsHaveASum(t *testing.T) {
	claim, total := 1.7e308, new(Total)
	for range 3 {
		total.Add(&schemas.Turn{CostUSD: &claim, CostFrom: schemas.CostFromAgent})
	}
	if total.CostUSD != 3*schemas.MaxCostUSD {
		t.Errorf("%v", total.CostUSD)
	}
}

func TestSessionCost(t *testing.T) {
	f := func(c float64) *float64 { return &c }
	for _, c := range []struct {
		name    string
		session *float64
		before  *schemas.Turn
		want    float64 // -1: unknown
	}{
		{"a new session", f(0.5), nil, 0.5},
		{"a resumed one", f(0.75), &schemas.Turn{SessionCostUSD: f(0.5)}, 0.25},
		{"prices win on record, the session's cost counts", f(0.75), &schemas.Turn{SessionCostUSD: f(0.5), CostUSD: f(9), CostFrom: schemas.CostFromPrices}, 0.25},
		{"a record of an earlier version", f(0.75), &schemas.Turn{CostUSD: f(0.5), CostFrom: schemas.CostFromAgent}, 0.25},
		{"nothing is known of before", f(0.75), &schemas.Turn{CostUSD: f(0.5), CostFrom: schemas.CostFromPrices}, 0.75},
		{"counted anew", f(0.1), &schemas.Turn{SessionCostUSD: f(0.5)}, 0.1},
		{"unknown", nil, &schemas.Turn{SessionCostUSD: f(0.5)}, -1},
	} {
		got := SessionCost(c.session, c.before)
		if (got == nil) != (c.want < 0) || got != nil && *got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
