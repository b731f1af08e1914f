package sessions

import (
	"testing"

	"reconcile.dev/reconcile/state/mutants"
)

// faults are those that the tests of this package must notice.
var faults = []mutants.Mutant{
	{"the sums of sessions lag behind", "sums.go", "\t\t\ts.put(is)\n", "\t\t\t_ = is\n"},
	{"a decision that nobody took over counts", "sums.go", "\tclear(s.ahead)\n", "\tclear(s.parts)\n"},
	{"DAGs that ended before are forgotten", "sums.go", "return r.before && ", "return false && "},
}

func TestMutants(t *testing.T) {
	mutants.Suite{Mutants: faults, Args: []string{"-short", "-run", "TestSums"}}.Run(t)
}
