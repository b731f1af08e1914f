package schemas

import (
	"time"
)

// Budget bounds what agents may use. A field that is missing bounds nothing.
type Budget struct {
	// Requests is the number of requests to a model.
	Requests int64 `json:"requests,omitempty" jsonschema:"minimum=1,maximum=1000000000000"`
	// Tokens is the number of tokens that are read and written; those from a cache count as well.
	Tokens int64 `json:"tokens,omitempty" jsonschema:"minimum=1,maximum=1000000000000000"`
	// CostUSD is the price in US dollars. Turns whose price is unknown count only in the other measures.
	CostUSD float64 `json:"costUSD,omitempty" jsonschema:"minimum=0,maximum=1000000000,example=2.5"`
	// Time is how long agents may work, the times of all turns added up.
	Time *Duration `json:"time,omitempty"`
}

// BudgetSettings bounds what the agents of the tree may use.
type BudgetSettings struct {
	// Day bounds what all agents of the tree use on one day, in UTC.
	Day *Budget `json:"day,omitempty"`
}

// defaultTurnTokens is Limits.TurnTokens where settings do not say otherwise.
const defaultTurnTokens = 200000

// check reports a budget that bounds nothing, or that nothing can keep.
func (b *Budget) check(at Spot) {
	switch {
	case b == nil:
	case *b == Budget{}:
		at.Errorf("missing", "bounds nothing").suggest("write requests, tokens, costUSD or time, or remove the budget")
	default:
		checkTimeout(at.At("time"), b.Time)
	}
}

// Equal reports whether two budgets bound the same.
func (b *Budget) Equal(o *Budget) bool {
	return b.Requests == o.Requests && b.Tokens == o.Tokens && b.CostUSD == o.CostUSD && b.Limit() == o.Limit()
}

// Limit is the bound on time; 0: none.
func (b *Budget) Limit() time.Duration {
	if b == nil || b.Time == nil {
		return 0
	}
	return b.Time.Std()
}

// budgetsOf returns the budgets that an object sets; those of nodes by their names, its own by "".
func budgetsOf(o *Object) map[string]*Budget {
	out := map[string]*Budget{}
	if o == nil {
		return out
	}
	if s := SpecAs[*SessionSpec](o); s != nil && s.Budget != nil {
		out[""] = s.Budget
	}
	if d := SpecAs[*DAGSpec](o); d != nil {
		if d.Budget != nil {
			out[""] = d.Budget
		}
		for name, n := range d.named() {
			if n.Budget != nil {
				out["node "+name] = n.Budget
			}
		}
	}
	return out
}
