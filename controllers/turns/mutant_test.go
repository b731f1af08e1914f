package turns

import (
	"testing"

	"reconcile.dev/reconcile/state/mutants"
)

// faults are those in the costs and tokens of turns, which the tests must notice.
var faults = []mutants.Mutant{
	{"the cost of a session is that of the turn", "total.go", "cost := *session - *earlier", "cost := *session", "TestSessionCost"},
	{"an agent that counts anew costs less than nothing", "total.go", "earlier == nil || *earlier > *session", "earlier == nil", "TestSessionCost"},
	{"prices are taken for the cost of a session", "total.go", "earlier == nil && before.CostFrom == schemas.CostFromAgent", "earlier == nil", "TestSessionCost"},
	{"sums of claims are no numbers", "total.go", "min(*turn.CostUSD, schemas.MaxCostUSD)", "*turn.CostUSD", "TestCostsHaveASum"},
	{"an estimate is a fact", "total.go", "if _, known := turn.Tokens(); !known && turn.Estimate != nil {", "if false {", "TestTotal"},
}

func TestMutants(t *testing.T) { mutants.Suite{Mutants: faults}.Run(t) }
