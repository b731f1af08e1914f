package cron

import (
	"testing"

	"reconcile.dev/reconcile/state/mutants"
)

// faults are those that the tests of this package must notice.
var faults = []mutants.Mutant{
	{"a time that a clock shows twice counts at its second occurrence", "cron.go",
		"if wallOf(is).Equal(wall) && !wallOf(before).Equal(wall) {", "if wallOf(is.Add(time.Hour)).Equal(wall) {"},
	{"a time after one that is left out is lost", "cron.go", "at = other", "_ = other"},
	{"a schedule of every hour leaves out an hour", "cron.go", "if s.spec.Hour&everyHour != 0 {", "if false {"},
	{"a time that is left out is lost", "cron.go", "const mostSkipped = 3 * time.Hour", "const mostSkipped = 0 * time.Hour"},
	{"days up to 7 end with Saturday", "cron.go", "for day := from; day <= 7; day += by {", "for day := from; day < 7; day += by {"},
	{"the first missed times count", "cron.go", "return out[max(n-most, 0):]", "return out[:min(n, most)]"},
	{"missed times have no bound", "cron.go", "return out[max(n-most, 0):]", "return out[max(n-most, 0)*0:]"},
}

func TestMutants(t *testing.T) { mutants.Suite{Mutants: faults}.Run(t) }
