package budgets

import (
	"math"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// TestClaims: turns of agents that claim what cannot be use a budget up, and their sum gives nothing back.
func TestClaims(t *testing.T) {
	start := schemas.Time{Time: time.Unix(1, 0)}
	turn := func(cost float64, u *schemas.Usage) *schemas.Turn { return &schemas.Turn{CostUSD: &cost, Usage: u} }
	for name, r := range map[string]schemas.Run{
		"cost":     {Turn: turn(1.7e308, nil)},
		"tokens":   {Turn: turn(1e6, &schemas.Usage{InputTokens: math.MaxInt64 - 9, OutputTokens: 9})},
		"overflow": {Turn: turn(1e6, &schemas.Usage{InputTokens: math.MaxInt64, OutputTokens: 9, Requests: math.MaxInt64})},
		"requests": {Turn: turn(1e6, &schemas.Usage{InputTokens: 1, Requests: math.MaxInt64})},
		"estimate": {Turn: &schemas.Turn{Estimate: &schemas.Usage{InputTokens: math.MaxInt64 - 1}}},
		"negative": {Turn: turn(-1e300, &schemas.Usage{InputTokens: math.MinInt64, Requests: -5})},
		"clock":    {FinishedAt: schemas.Time{Time: time.Unix(1<<40, 0)}},
	} {
		var sum use
		r.StartedAt = start
		for range 1000 {
			sum.add(ofRun(&r, 200), 1)
		}
		if sum.requests < 1000 || sum.tokens < 1000 || sum.cost < 0 || sum.time < 0 {
			t.Errorf("%s: 1000 turns are %+v", name, sum)
		}
		if name == "cost" && sum.cost < toCost(schemas.MaxCostUSD) {
			t.Errorf("%s: 1000 turns cost %d", name, sum.cost)
		}
	}
}

// TestTimeOfARun: the clock of the machine may be set, and the machine may sleep, while a turn runs. Its own clock ended it in time.
func TestTimeOfARun(t *testing.T) {
	hour := schemas.Duration(time.Hour)
	r := schemas.Run{StartedAt: schemas.Time{Time: time.Unix(1, 0)}, FinishedAt: schemas.Time{Time: time.Unix(1e6, 0)}, Budget: &schemas.Budget{Time: &hour}}
	if u := ofRun(&r, 0); u.time != time.Hour {
		t.Errorf("a turn with an hour used %s", u.time)
	}
	r.FinishedAt = schemas.Time{Time: time.Unix(61, 0)}
	if u := ofRun(&r, 0); u.time != time.Minute {
		t.Errorf("a turn of a minute used %s", u.time)
	}
}
