package permits

import (
	"testing"

	"reconcile.dev/reconcile/state/mutants"
)

// faults are those in how long an answer counts, which the tests must notice.
var faults = []mutants.Mutant{
	{"an answer for one request counts for ever", "permits.go", "&& endsAttempt(r)", "&& endsAttempt(r) && false", "TestExpired"},
	{"an end before the answer counts", "permits.go", "r.FinishedAt.After(answered.Time)", "!answered.IsZero()", "TestExpired"},
	{"another node's end is that of the attempt", "permits.go", "return r.Node == q.Node && r.FinishedAt", "return r.FinishedAt", "TestExpired"},
	{"the answer of a program counts", "permits.go", "|| distrusted(e) ", "", "TestDecide"},
	{"a landing is the end of an attempt", "permits.go", "case schemas.OutcomeSucceeded:\n\t\treturn r.IsWork()", "case schemas.OutcomeSucceeded:\n\t\treturn true", "TestExpired"},
}

func TestMutants(t *testing.T) { mutants.Suite{Mutants: faults}.Run(t) }
