package controllers

import (
	"testing"
	"time"

	"reconcile.dev/reconcile/controllers/budgets"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// TestExcluded: a run of a DAG in a concurrency group waits while another DAG of the group works elsewhere, and for nothing else.
func TestExcluded(t *testing.T) {
	t.Parallel()
	effect := func(dag, group string) *settle.Effect {
		return &settle.Effect{Owner: schemas.DAGKind.Ref(dag), Exclusive: group}
	}
	until := time.Unix(100, 0)
	held := budgets.HoldOf(effect("a", "deploy"))
	held.Until = until
	for _, c := range []struct {
		dag, group string
		waits      bool
	}{
		{"b", "deploy", true}, {"a", "deploy", false}, {"b", "deploy2", false}, {"b", "dep", false}, {"b", "", false},
	} {
		if got := budgets.Excluded(effect(c.dag, c.group), []budgets.Hold{*held}); got.IsZero() == c.waits || c.waits && !got.Equal(until) {
			t.Errorf("dag/%s of group %q: %v", c.dag, c.group, got)
		}
	}
	if budgets.HoldOf(effect("a", "")) != nil || !held.Sound() {
		t.Errorf("%+v", held)
	}
}
