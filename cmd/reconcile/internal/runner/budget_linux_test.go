package runner

import (
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// TestTurnsEndWithTheirBudgets ends turns that would go on for ever, and none that is over with its budget.
func TestTurnsEndWithTheirBudgets(t *testing.T) {
	short := schemas.Duration(300 * time.Millisecond)
	for _, c := range []struct {
		steps  string
		budget *schemas.Budget
		want   string
	}{
		{"usage:400:1000|usage:500:1000|hang", &schemas.Budget{Tokens: 500}, "Failed budget budget used up: it used 500 of 500 tokens; the turn was ended"},
		{"usage:400:1000|hang", &schemas.Budget{Tokens: 500, Time: &short}, "Failed budget budget used up: it worked for 300ms; the turn was ended"},
		{"usage:400:1000|text:done", &schemas.Budget{Tokens: 500}, `Succeeded "done"`},
		{"usage:500:1000|text:done", nil, `Succeeded "done"`},
	} {
		e := agentOf(strings.Split(c.steps, "|")...)
		e.Reserve(c.budget)
		e.Command().Timeout = 2 * time.Minute // without a budget
		run := newRig(t, Options{}).do(e)
		if got := outcomeOf(run); !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: got  %s\nwant %s", c.steps, got, c.want)
		}
		if stopped := strings.HasPrefix(c.want, "Failed"); run.StoppedByBudget() != stopped || run.Budget != c.budget {
			t.Errorf("%s: the record has %+v", c.steps, run)
		}
	}
}

// TestCommandsEndWithTheirTime ends the command of an agent when the time of its budget is over, before its time limit.
func TestCommandsEndWithTheirTime(t *testing.T) {
	e := effect(theKey, "sleep", "60")
	e.Command().Output, e.Command().Timeout, e.Agent = "text", time.Hour, "engineer"
	short := schemas.Duration(100 * time.Millisecond)
	e.Reserve(&schemas.Budget{Time: &short})
	run := newRig(t, Options{}).do(e)
	if !run.StoppedByBudget() || !strings.Contains(run.Message, "budget used up: it worked for 100ms") {
		t.Errorf("%s: %s", run.Outcome, run.Message)
	}
}
