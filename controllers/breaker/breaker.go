// Package breaker decides, from the records of runs, which agents get no work for a while: those whose runs failed in a row for a
// reason that is not the work. Every process that sees the same records decides the same.
package breaker

import (
	"fmt"
	"time"

	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// State says whether an agent gets work.
type State string

// States of a breaker.
const (
	Closed   State = "closed"    // it does
	Open     State = "open"      // it does not
	HalfOpen State = "half open" // one run is tried
)

// longestWait bounds the time between two tries.
const longestWait = time.Hour

// Breaker is that of an agent at a time.
type Breaker struct {
	State State `json:"state"`
	// Failures is how many runs failed in a row, and Reason why the last of them did, at Last.
	Failures int          `json:"failures"`
	Reason   string       `json:"reason,omitempty"`
	Last     schemas.Time `json:"last,omitzero"`
	// Until is the end of the wait: from then on one run is tried; zero for a closed one.
	Until schemas.Time `json:"until,omitzero"`
	// Trying says that a run of the agent is under way, or about to be.
	Trying bool `json:"trying,omitempty"`
}

// Describe says why the agent gets no work, in a part of a sentence; "" for a closed one.
func (b *Breaker) Describe() string {
	if b.State == Closed {
		return ""
	}
	return fmt.Sprintf("%s in a row failed, the last one: %s", schemas.Count(b.Failures, "run"), b.Reason)
}

// failed is a run of an agent that failed for a reason that is not the work.
type failed struct {
	at  schemas.Time
	why string
}

// counts says what a run on record says about its agent: that it works, that it does not, or neither.
func counts(r *schemas.Run) (works bool, why string) {
	switch r.Outcome {
	case schemas.OutcomeSucceeded, schemas.OutcomeAsked, schemas.OutcomeHandedOff, schemas.OutcomeNotPermitted:
		return true, ""
	case schemas.OutcomeFailed, schemas.OutcomeTimedOut:
	default:
		return false, ""
	}
	if r.Turn == nil || r.Turn.Failure == nil {
		return r.Outcome == schemas.OutcomeFailed, "" // it answered, and its answer was not good enough, or it did not answer in time
	}
	switch f := r.Turn.Failure; f.Class {
	case schemas.FailureService, schemas.FailureAccess, schemas.FailureConnection:
		if r.Message != "" {
			return false, r.Message
		}
		return false, f.Class
	case schemas.FailureRequest:
		return true, ""
	}
	return false, ""
}

// at returns the breaker of an agent at a time: row are the failures since the last run that worked, in order. Failures of runs that
// had started when the breaker opened do not count as tries.
func at(row []failed, trying bool, s *schemas.BreakerSettings, now time.Time) Breaker {
	most := *s.Failures
	if most == 0 || len(row) < most {
		return Breaker{State: Closed, Failures: len(row), Trying: trying}
	}
	wait := s.Wait.Std()
	until := row[most-1].at.Add(wait)
	for _, f := range row[most:] {
		if !f.at.Before(until) {
			wait = min(2*wait, max(longestWait, s.Wait.Std()))
			until = f.at.Add(wait)
		}
	}
	last := row[len(row)-1]
	b := Breaker{State: Open, Failures: len(row), Reason: last.why, Last: last.at, Until: schemas.NewTime(until), Trying: trying}
	if !now.Before(until) || now.Before(last.at.Time) { // a clock that was wrong
		b.State = HalfOpen
	}
	return b
}

// ProbeGroup is the group of the one run of an agent that is tried.
func ProbeGroup(agent string) settle.Group {
	return settle.Group{Name: "probe/" + agent, Limit: 1, Exact: true}
}
