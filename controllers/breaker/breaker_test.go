package breaker

import (
	"math/rand/v2"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/mutants"
)

var noon = time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)

func settings(failures int, wait time.Duration) *schemas.BreakerSettings {
	d := schemas.Duration(wait)
	return &schemas.BreakerSettings{Failures: &failures, Wait: &d}
}

// row are failures at seconds after noon.
func row(seconds ...int) (out []failed) {
	for _, s := range seconds {
		out = append(out, failed{schemas.NewTime(noon.Add(time.Duration(s) * time.Second)), "service failure"})
	}
	return out
}

func TestBreakerOpensAndTriesAgain(t *testing.T) {
	for _, c := range []struct {
		name  string
		row   []failed
		now   int
		state State
		until int
	}{
		{"too few", row(1, 2), 3, Closed, 0},
		{"enough", row(1, 2, 3), 4, Open, 63},
		{"the wait is over", row(1, 2, 3), 63, HalfOpen, 63},
		{"runs that had started are no tries", row(1, 2, 3, 10, 20), 62, Open, 63},
		{"a try failed", row(1, 2, 3, 64), 65, Open, 184},
		{"two tries failed", row(1, 2, 3, 64, 190), 191, Open, 430},
		{"the wait is bounded", row(1, 2, 3, 64, 190, 500, 1000, 2000, 5000, 9000), 9001, Open, 12600},
		{"a clock that was wrong", row(1, 2, 99999), 10, HalfOpen, 100059},
	} {
		b := at(c.row, false, settings(3, time.Minute), noon.Add(time.Duration(c.now)*time.Second))
		until := 0
		if !b.Until.IsZero() {
			until = int(b.Until.Sub(noon) / time.Second)
		}
		if b.State != c.state || until != c.until {
			t.Errorf("%s: %s until %d, want %s until %d", c.name, b.State, until, c.state, c.until)
		}
	}
	if b := at(row(1, 2, 3, 4, 5), false, settings(0, time.Minute), noon); b.State != Closed {
		t.Errorf("without failures in the settings it is %s", b.State)
	}
}

func TestWhatCounts(t *testing.T) {
	failure := func(class string) *schemas.Run {
		return &schemas.Run{Outcome: schemas.OutcomeFailed, Turn: &schemas.Turn{Failure: &schemas.TurnFailure{Class: class}}}
	}
	for _, class := range []string{schemas.FailureService, schemas.FailureAccess, schemas.FailureConnection} {
		if works, why := counts(failure(class)); works || why == "" {
			t.Errorf("%s does not count as a failure", class)
		}
	}
	for _, class := range []string{schemas.FailureLimit, schemas.FailureBudget, schemas.FailureUnknown} {
		if works, why := counts(failure(class)); works || why != "" {
			t.Errorf("%s counts: %v %q", class, works, why)
		}
	}
	for _, r := range []*schemas.Run{{Outcome: schemas.OutcomeSucceeded}, {Outcome: schemas.OutcomeAsked}, {Outcome: schemas.OutcomeFailed}} {
		if works, _ := counts(r); !works {
			t.Errorf("%s does not show that the agent works", r.Outcome)
		}
	}
	for _, r := range []*schemas.Run{{Outcome: schemas.OutcomeCancelled}, {Outcome: schemas.OutcomeInterrupted}, {Outcome: schemas.OutcomeTimedOut}} {
		if works, why := counts(r); works || why != "" {
			t.Errorf("%s counts: %v %q", r.Outcome, works, why)
		}
	}
}

// The shares of objects change in any order; what comes out is that of all of them at once.
func TestSharesFollow(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		a := &agent{shares: map[schemas.Ref]*share{}, failed: map[schemas.Ref]*share{}}
		now := map[schemas.Ref]*share{}
		for range 30 {
			ref := schemas.DAGKind.Ref(string(rune('a' + r.IntN(4))))
			s := &share{claims: r.IntN(2), failed: row(r.IntN(100))}
			if r.IntN(3) > 0 {
				s.worked = schemas.NewTime(noon.Add(time.Duration(r.IntN(100)) * time.Second))
			}
			if r.IntN(4) == 0 {
				s = nil
			}
			a.replace(ref, s)
			if delete(now, ref); s != nil {
				now[ref] = s
			}
			var worked schemas.Time
			claims := 0
			for _, s := range now {
				worked, claims = schemas.Later(worked, s.worked), claims+s.claims
			}
			if a.worked != worked || a.claims != claims || len(a.failed) != len(now) {
				t.Fatalf("worked %v, claims %d, failed %d; want %v, %d, %d", a.worked, a.claims, len(a.failed), worked, claims, len(now))
			}
		}
	}
}

func TestMutants(t *testing.T) {
	mutants.Suite{Mutants: []mutants.Mutant{
		{"the breaker never opens", "breaker.go", "if most == 0 || len(row) < most {", "if true {"},
		{"the wait does not grow", "breaker.go", "wait = min(2*wait,", "wait = min(wait,"},
		{"a rate limit opens it", "breaker.go", "case schemas.FailureService,", "case schemas.FailureLimit, schemas.FailureService,"},
		{"a turn whose time ran out closes it", "breaker.go", "return r.Outcome == schemas.OutcomeFailed, \"\"", "return true, \"\""},
		{"what is gone counts", "breakers.go", "is.claims - was.claims", "is.claims"},
	}}.Run(t)
}
