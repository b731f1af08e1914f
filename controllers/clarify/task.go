package clarify

import (
	"cmp"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// SucceededWith is the resolution of a matter whose node succeeded with the answer and had nothing to say of it.
const SucceededWith = "The task succeeded with this answer."

// fromTask is what the asking node made of an answer: it asked again, or succeeded with it.
func (d *decision) fromTask() *event {
	if d.Task == nil || !d.in(schemas.ClarificationAnswered) {
		return nil
	}
	for _, r := range d.later() {
		switch {
		case r.Outcome == schemas.OutcomeAsked && r.Asks != nil && r.Asks.To == d.Spec.To:
			e := d.runEntry(r, schemas.TurnQuestion, d.Spec.From, r.Asks.Question)
			return &event{r.FinishedAt, func() { d.follow(e) }}
		case r.Outcome == schemas.OutcomeSucceeded && d.sawAnswer(r):
			body := cmp.Or(strings.TrimSpace(r.Resolution), SucceededWith)
			e := d.runEntry(r, schemas.TurnResolution, d.Spec.From, body)
			return &event{r.FinishedAt, func() { d.resolve(e) }}
		}
	}
	return nil
}

// later are the node's runs after the one that asked last.
func (d *decision) later() []*schemas.Run {
	asked := d.Task.Key
	for _, e := range d.st.Thread {
		if key, ok := strings.CutPrefix(e.Source, runSource("")); ok && e.Type == schemas.TurnQuestion {
			asked = key
		}
	}
	for i, r := range d.Task.Runs {
		if r.Key == asked {
			return d.Task.Runs[i+1:]
		}
	}
	return d.sinceQuestion()
}

// sinceQuestion are the runs that ended after the last question, where the run that asked it has no record (yet).
func (d *decision) sinceQuestion() []*schemas.Run {
	q := lastEntry(d.st.Thread, schemas.TurnQuestion)
	for i, r := range d.Task.Runs {
		if q == nil || r.FinishedAt.After(q.Timestamp.Time) {
			return d.Task.Runs[i:]
		}
	}
	return nil
}

// sawAnswer reports whether a run began when the answer was there: a success without it resolves nothing.
func (d *decision) sawAnswer(r *schemas.Run) bool {
	a := lastEntry(d.st.Thread, schemas.TurnAnswer)
	return a != nil && !r.StartedAt.Before(a.Timestamp.Time)
}
