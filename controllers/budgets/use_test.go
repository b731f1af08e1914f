package budgets

import (
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// TestClaimsOfCosts: turns of agents that claim costs which cannot be use a budget up, and their sum gives nothing back.
func TestClaimsOfCosts(t *testing.T) {
	claim := 1.7e308
	var sum use
	for range 10 {
		sum.add(ofRun(&schemas.Run{StartedAt: schemas.Time{Time: time.Unix(1, 0)}, Turn: &schemas.Turn{CostUSD: &claim}}, 0), 1)
	}
	if sum.cost < toCost(schemas.MaxCostUSD) {
		t.Errorf("10 turns cost %d", sum.cost)
	}
}
