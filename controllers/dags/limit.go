package dags

import (
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// A run that failed of a rate limit whose end is known uses up no attempt: its node waits for the end, and the next run
// continues the session of the agent.

const (
	// mostLimits bounds the runs of a node that may end so under one key; later ones count as attempts. An agent that names an
	// end in a second, again and again, would run forever.
	mostLimits = 12
	// limitWait is how far off the end of a limit may be for a one-shot run to wait for it. A later run continues otherwise.
	limitWait = 10 * time.Minute
)

// RetryToGoOn ends the message of a node that goes on after a limit only when a person says so.
const RetryToGoOn = "; retry it to go on"

// limited reports whether the run ended with a limit that its node waits for; before counts those before it.
func (f *fold) limited(before int, run *schemas.Run) bool {
	return f.resumes != schemas.ResumeNever && before < mostLimits && !run.LimitedUntil().IsZero()
}

// waitsForLimit reports whether the node waits for the end of a rate limit; if so, it has set the state. An end that is further
// off than limits last was recorded under a clock that was wrong.
func (f *fold) waitsForLimit(i int32) bool {
	return f.recs[i].limited != nil && f.waitsForLimitOf(i, f.recs[i].limited)
}

// waitsForLimitOf is waitsForLimit for the limit that a run met, if it met one.
func (f *fold) waitsForLimitOf(i int32, run *schemas.Run) bool {
	until := run.LimitedUntil()
	if run.StoppedByBudget() || until.IsZero() {
		return false
	}
	if f.resumes == schemas.ResumeAsk {
		f.set(i, schemas.NodeBlocked, settle.ReasonRateLimited, run.Message+RetryToGoOn)
		return true
	}
	if !f.Now.Before(until.Time) || f.Now.Before(run.FinishedAt.Time) {
		return false
	}
	f.set(i, schemas.NodeQueued, settle.ReasonRateLimited, run.Message)
	f.next[i].RetryAt = until
	if until.Sub(f.Now) <= limitWait {
		f.wake(until.Time)
	} else {
		f.wakeLater(until.Time)
	}
	return true
}

// unsuccessful is the run before, if it failed, also of a rate limit; else nil.
func (r *nodeRecord) unsuccessful() *schemas.Run {
	if r.limited != nil {
		return r.limited
	}
	return r.failed
}

// wakeLater is wake for a time that a one-shot run does not wait for.
func (f *fold) wakeLater(at time.Time) {
	if f.later.IsZero() || at.Before(f.later) {
		f.later = at
	}
}
