package budgets

import (
	"math"
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/mutants"
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
		one := ofRun(&r, 200)
		for range 1000 {
			sum.add(one, 1)
		}
		if one.requests < 1 || one.tokens < 1 || one.cost < 0 || one.time < 0 {
			t.Errorf("%s: a turn is %+v", name, one)
		}
		if sum.requests/1000 != one.requests || sum.tokens/1000 != one.tokens || sum.cost/1000 != one.cost || sum.time/1000 != one.time {
			t.Errorf("%s: 1000 turns are %+v, one is %+v", name, sum, one)
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

// TestUseOfARun: what is not known of a turn that started is what it had reserved; one that did not start used nothing.
func TestUseOfARun(t *testing.T) {
	start := schemas.Time{Time: time.Unix(1, 0)}
	for name, c := range map[string]struct {
		run  schemas.Run
		want use
	}{
		"not started": {schemas.Run{FinishedAt: start, Budget: &schemas.Budget{Tokens: 7}}, use{}},
		"unknown":     {schemas.Run{StartedAt: start, FinishedAt: start}, use{turns: 1, requests: 1, tokens: 200, unknownTokens: 1, unknownCost: 1}},
		"reserved": {schemas.Run{StartedAt: start, FinishedAt: start, Budget: &schemas.Budget{Tokens: 7}},
			use{turns: 1, requests: 1, tokens: 7, unknownTokens: 1, unknownCost: 1}},
		"killed": {schemas.Run{StartedAt: start, FinishedAt: start, Outcome: schemas.OutcomeInterrupted, Turn: &schemas.Turn{Usage: &schemas.Usage{InputTokens: 9, Requests: 3}}},
			use{turns: 1, requests: 3, tokens: 9, unknownCost: 1}},
	} {
		if got := ofRun(&c.run, 200); got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
}

// TestReserve: what a turn reserves of what its budgets leave, and that two that start at once share it.
func TestReserve(t *testing.T) {
	node := settle.Allowance{Scope: "dag/d/n", Limit: schemas.Budget{Tokens: 900}, Node: true, Turns: 1}
	agent := settle.Allowance{Scope: "agent/a", Limit: schemas.Budget{Tokens: 600}, Turns: 3}
	session := settle.Allowance{Scope: "session/s", Limit: schemas.Budget{Tokens: 500}}
	few := settle.Allowance{Scope: "session/s", Limit: schemas.Budget{Requests: 8}}
	for _, c := range []struct {
		name string
		all  []settle.Allowance
		want []int64 // tokens of one turn after the other, else requests
	}{
		{"none", nil, []int64{0, 0}},
		{"a node takes all", []settle.Allowance{node}, []int64{900, -1}},
		{"a node takes what others leave", []settle.Allowance{node, session}, []int64{500, -1}},
		{"an agent divides", []settle.Allowance{agent}, []int64{200, 133, 89}},
		{"a session gives what turns usually take", []settle.Allowance{session}, []int64{200, 200, 100, -1}},
		{"the smallest counts", []settle.Allowance{agent, session}, []int64{200, 200, 100, -1}},
		{"requests", []settle.Allowance{few}, []int64{2, 1, 1, 1, 1, 1, 1, -1}},
	} {
		l := &Ledger{Sums: &Sums{turnTokens: 200}, Slots: 4}
		for i, want := range c.want {
			got := int64(-1)
			if b, ok := l.Reserve(&settle.Effect{Allowances: c.all, Task: new(settle.Command)}); ok {
				if got = 0; b != nil {
					got = b.Tokens + b.Requests
				}
			}
			if got != want {
				t.Errorf("%s: turn %d reserves %d, want %d", c.name, i+1, got, want)
			}
		}
	}
}

func TestMutants(t *testing.T) {
	mutants.Suite{Mutants: []mutants.Mutant{
		{"an absurd number of requests counts", "use.go", "min(max(t.Usage.Requests, 1), mostRequests)", "max(t.Usage.Requests, 1)"},
		{"an absurd number of tokens counts", "use.go", "min(tokens, mostTokens)", "tokens"},
		{"an absurd estimate counts", "use.go", "min(max(t.Estimate.InputTokens+t.Estimate.OutputTokens, 1), mostTokens)", "t.Estimate.InputTokens + t.Estimate.OutputTokens"},
		{"an absurd cost counts", "use.go", "min(max(*t.CostUSD, 0), schemas.MaxCostUSD)", "max(*t.CostUSD, 0)"},
		{"a cost gives back", "use.go", "max(*t.CostUSD, 0)", "*t.CostUSD"},
		{"a clock that is set uses a budget up", "use.go", "mostTime, cmp.Or(r.Budget.Limit(), mostTime))", "cmp.Or(r.Budget.Limit(), time.Duration(1<<62)))"},
		{"a machine that slept uses a budget up", "use.go", "cmp.Or(r.Budget.Limit(), mostTime)", "cmp.Or(mostTime, mostTime)"},
		{"a run that did not start counts", "use.go", "if r.StartedAt.IsZero() {", "if false {"},
		{"unknown tokens are none", "use.go", "if u.tokens = turnTokens; r.Budget", "if r.Budget"},
		{"a killed turn without a word used little", "use.go", "\t\t\tu.tokens = r.Budget.Tokens\n", ""},
		{"two that start at once reserve the same", "reserve.go", "\t\tl.hold(a.Scope, b)\n", "\t\t_ = a\n"},
		{"a turn reserves more than is left", "reserve.go", "return min(own, left), bounded", "return own, bounded"},
		{"a turn starts with nothing left", "reserve.go", "if bounded && n <= 0 {", "if false {"},
		{"one turn of an agent takes all", "reserve.go", "own = is / int64(max(a.Turns, 1))", "own = is"},
		{"a budget that others share is divided", "reserve.go", "if !node && (own == 0 || shared) {", "if !node && own == 0 || shared && false {"},
		{"a node shares its budget", "reserve.go", "node, own = true, is", "own = is / 2"},
	}}.Run(t)
}
