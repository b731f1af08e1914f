package outputs

import (
	"testing"

	"reconcile.dev/reconcile/state/mutants"
)

// faults are those that a test of this package must notice: those that believe bytes which others wrote.
var faults = []mutants.Mutant{
	{"the bytes of a reference are trusted", "outputs.go", "if err == nil && (n != out.Size ||", "if false && (n != out.Size ||", "TestFillTrustsNobody"},
	{"as much is read as somebody sends", "outputs.go", "io.LimitReader(from, out.Size+1)", "from", "TestFillTrustsNobody"},
}

func TestMutants(t *testing.T) { mutants.Suite{Mutants: faults}.Run(t) }
