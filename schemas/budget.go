package schemas

import (
	"cmp"
	"reflect"
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

// DefaultTurnTokens is Limits.TurnTokens where settings do not say otherwise.
const DefaultTurnTokens = 200000

// check reports a budget that bounds nothing, or that nothing can keep.
func (b *Budget) check(at Spot) {
	switch {
	case b == nil:
	case *b == Budget{}:
		at.Errorf("missing", "bounds nothing").Suggest("write requests, tokens, costUSD or time, or remove the budget")
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

// OnlyPeople says what only people may do of a change of a spec, as a verb phrase; "" if agents may make it, too. before is the object
// that the change replaces, nil for a new one; after is nil for a removal. Settings and agents decide what agents may do, some verbs
// of actions are decisions of people, and a budget that is set bounds agents.
func OnlyPeople(ref Ref, before, after *Object) string {
	if ref.Kind == SettingsKind.Name || ref.Kind == AgentKind.Name {
		return "write " + ref.String()
	}
	for _, o := range []*Object{after, before} {
		if o == nil {
			continue
		}
		if a := SpecAs[*ActionSpec](o); a != nil && OfPeople(a.Verb) {
			return a.Verb
		}
	}
	was, is := budgetsOf(before), budgetsOf(after)
	for place, b := range was {
		if !reflect.DeepEqual(b, is[place]) {
			return "change the budget of " + cmp.Or(place, ref.String())
		}
	}
	return ""
}

// OfPeople reports whether a verb is a decision of a person.
func OfPeople(verb string) bool {
	return verb == VerbSkip || verb == VerbApprove || verb == VerbDeny || IsMessage(verb)
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
		for i := range d.Nodes {
			if b := d.Nodes[i].Budget; b != nil {
				out["node "+d.Nodes[i].Name] = b
			}
		}
	}
	return out
}
