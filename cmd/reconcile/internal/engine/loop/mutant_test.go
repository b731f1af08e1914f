package loop

import (
	"testing"

	"reconcile.dev/reconcile/state/mutants"
)

// faults are those in finding what differs from the settled tree, which the comparison with whole runs must notice, and in how
// long the lock of the tree is held.
var faults = []mutants.Mutant{
	{"what becomes due is forgotten", "../../../../../state/base.go", "range b.clocks {\n\t\tu.touch", "range b.clocks[:0] {\n\t\tu.touch"},
	{"who refers to what changed is forgotten", "../../../../../state/base.go", "\tu.readers()\n", ""},
	{"inputs are forgotten", "../../../../../state/base.go", "\tu.inputs()\n", ""},
	{"inputs are not looked at before a node starts", "turn.go", "if owner := s.tree.Entry(e.Owner); s.stale && ",
		"if owner := s.tree.Entry(e.Owner); false && "},
	{"the lock of the tree is kept over slow commands", "wait.go", "quick = time.After(startFor)", "quick = nil"},
	{"outputs are forgotten", "../../../../../state/base.go", "\tu.outputs(was)\n", ""},
	{"what is gone is forgotten", "../../../../../state/base.go", "if left--; !u.forget(p, sum) {", "if left--; sum == 0 {"},
	{"a status changed by hand is believed", "../../../../../state/base.go", "if had && sum == f.content() {",
		"if had && (f.area == areaStatus || sum == f.content()) {"},
	{"ledgers are believed", "../../../../../state/base.go", "\t\tu.about(f, !had)\n",
		"\t\tif f.area != areaLedgers {\n\t\t\tu.about(f, !had)\n\t\t}\n"},
}

func TestMutants(t *testing.T) {
	mutants.Suite{Mutants: faults, Args: []string{"-short", "-run", "TestRunSinceSettled|TestInputsThatANodeMakes|TestLockDoesNotLinger"}}.Run(t)
}
