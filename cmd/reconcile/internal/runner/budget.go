package runner

import (
	"fmt"
	"strconv"

	"reconcile.dev/reconcile/schemas"
)

// overBudget says what of its budget a turn has used up so far; "" if nothing, or if that is not known.
func overBudget(b *schemas.Budget, t *schemas.Turn) string {
	if b == nil || t == nil {
		return ""
	}
	if u := t.Usage; u != nil {
		// The latest request alone has read the whole context.
		used := max(u.InputTokens+u.OutputTokens, u.ContextUsed)
		switch {
		case b.Tokens > 0 && used >= b.Tokens:
			return fmt.Sprintf("it used %d of %d tokens", used, b.Tokens)
		case b.Requests > 0 && u.Requests > b.Requests:
			return fmt.Sprintf("it made %d of %d requests", u.Requests, b.Requests)
		}
	}
	if t.CostUSD != nil && b.CostUSD > 0 && *t.CostUSD >= b.CostUSD {
		return "it cost $" + strconv.FormatFloat(*t.CostUSD, 'f', 4, 64) + " of $" + strconv.FormatFloat(b.CostUSD, 'f', 4, 64)
	}
	return ""
}

// spend tells the one who waits for the turn that it has used up its budget. It does so once.
func (a *attempt) spend(why string) {
	select {
	case a.spent <- why:
	default:
	}
}

// budgetLimit is when the turn has used up the time of its budget; nil if none is set.
func (a *attempt) budgetLimit() *limit {
	d := a.task.Budget.Limit()
	if d == 0 {
		return nil
	}
	return &limit{cause{outcome: schemas.OutcomeTimedOut, spent: fmt.Sprintf("it worked for %s", d)}, d, true}
}

// failSpent records that a turn was ended for its budget.
func (a *attempt) failSpent(f *schemas.TurnFailure) {
	if a.record.Turn == nil {
		a.record.Turn = &schemas.Turn{Runner: schemas.RunnerCommand, Profile: a.task.ProfileName}
	}
	a.record.Turn.Failure = f
}
