package dags

import (
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// TestLimitsAreBounded lets an agent name the end of a rate limit again and again: that uses up attempts in the end. A success
// ends the waiting, and limits.resume: never counts each run as an attempt.
func TestLimitsAreBounded(t *testing.T) {
	end := time.Date(2026, 2, 27, 10, 0, 0, 0, time.UTC)
	run := func(seq int, class string) *schemas.Run {
		return &schemas.Run{Seq: seq, Outcome: schemas.OutcomeFailed, FinishedAt: schemas.NewTime(end),
			Turn: &schemas.Turn{Failure: &schemas.TurnFailure{Class: class, Until: schemas.NewTime(end.Add(time.Second))}}}
	}
	for _, c := range []struct {
		resume, class    string
		runs             int
		limits, failures int
		waits            bool
	}{
		{"", schemas.FailureLimit, 1, 1, 0, true},
		{schemas.ResumeAsk, schemas.FailureLimit, mostLimits, mostLimits, 0, true},
		{schemas.ResumeAuto, schemas.FailureLimit, mostLimits + 2, mostLimits, 2, false},
		{schemas.ResumeNever, schemas.FailureLimit, 2, 0, 2, false},
		{schemas.ResumeAuto, schemas.FailureService, 2, 0, 2, false},
	} {
		f := &fold{resumes: c.resume}
		r := new(nodeRecord)
		for seq := range c.runs {
			f.take(r, run(seq+1, c.class), false, false)
		}
		if r.limits != c.limits || r.failures != c.failures || (r.limited != nil) != c.waits {
			t.Errorf("%+v: %d limits, %d failures, waits %v", c, r.limits, r.failures, r.limited != nil)
		}
		f.take(r, &schemas.Run{Seq: c.runs + 1, Outcome: schemas.OutcomeSucceeded}, false, false)
		if r.limited != nil || !r.won {
			t.Errorf("%+v: after a success: %+v", c, r)
		}
	}
}
