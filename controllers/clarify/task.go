package clarify

import (
	"cmp"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// SucceededWith is the resolution of a question whose asker succeeded with the answer and returned no resolution.
const SucceededWith = "The task succeeded with this answer."

// fromTask returns the asking node's reaction to an answer: it asked again, or succeeded with it.
func (d *decider) fromTask() *event {
	if d.input.Task == nil || !d.in(schemas.ClarificationAnswered) {
		return nil
	}
	for _, r := range d.laterRun() {
		switch {
		case r.Outcome == schemas.OutcomeAsked && r.Asks != nil && r.Asks.To == d.input.Spec.To:
			e := d.runEntry(r, schemas.TurnQuestion, d.input.Spec.From, r.Asks.Question)
			return &event{r.FinishedAt, func() { d.askAgain(e) }}
		case r.Outcome == schemas.OutcomeSucceeded && d.sawAnswer(r):
			body := cmp.Or(strings.TrimSpace(r.Resolution), SucceededWith)
			e := d.runEntry(r, schemas.TurnResolution, d.input.Spec.From, body)
			return &event{r.FinishedAt, func() { d.resolve(e) }}
		}
	}
	return nil
}

// Task is the node of a DAG that asks.
type Task struct {
	// Runs are the finished runs of that node, of all keys, in the order of their ends. Runs whose question became a
	// request of its own, or the next round of another one, are left out.
	Runs []*schemas.Run
	// Key is the effect key of the run that asked first.
	Key string
}

// sawAnswer reports whether a run began after the answer: a success without it resolves nothing.
func (d *decider) sawAnswer(r *schemas.Run) bool {
	a := lastEntry(d.st.Thread, schemas.TurnAnswer)
	return a != nil && !r.StartedAt.Before(a.Timestamp.Time)
}
