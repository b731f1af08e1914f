package clarify

import (
	"testing"

	"reconcile.dev/reconcile/state/mutants"
)

// faults are those that the tests of this package must notice.
var faults = []mutants.Mutant{
	{"a pending question can be resolved", "clarify.go", "schemas.ClarificationPending: {",
		"schemas.ClarificationPending: {schemas.ClarificationResolved, "},
	{"moves are not checked", "clarify.go", "if !Legal(from, to) {", "if false {"},
	{"the order of what happened is ignored", "decide.go", "e.at.Before(first.at.Time)", "true"},
	{"a question too many is asked", "decide.go", "if e.Round > d.st.MaxRounds {", "if e.Round > d.st.MaxRounds+1 {"},
	{"a cancelled run is an attempt", "runs.go", "case schemas.OutcomeSucceeded, ",
		"case schemas.OutcomeCancelled, schemas.OutcomeSucceeded, "},
	{"every answer that is too long is asked for again", "runs.go", "long++; long == 1", "long++; long >= 1"},
	{"an answer that is too long is a failure at once", "runs.go", "long++; long == 1", "long++; long == 0"},
	{"a record that cannot be used takes a number", "ledger_file.go", "if r.bad && r.Request == \"\" {", "if false {"},
	{"the first record keeps its number before ours", "id.go", "o.Request != \"\" }", "false }"},
	{"a success without the answer resolves", "runs.go", "&& d.sawAnswer(r)", ""},
	{"what was refused is taken later", "replies.go", "if f := refusalOf(st, r); f != nil {",
		"if f := refusalOf(st, r); false {"},
	{"a foreign turn is written over", "ledger_file.go", "len(foreignTurns(r.Thread, c.Thread)) > 0 ||", ""},
	{"a foreign status is written over", "ledger_file.go", "|| foldAhead(&r.Clarification, c.Status, c.Round)", ""},
	{"a broken deadlock is a question that is turned round", "monitor.go", " || deadlock(c, first) {", " {"},
	{"a phase that there is not stays", "decide.go", "if !d.in(phases...) {", "if false {"},
	{"the upstream agent gives way", "cycles.go", "cmp.Compare(a.Rank, b.Rank)", "cmp.Compare(b.Rank, a.Rank)"},
}

func TestMutants(t *testing.T) { mutants.Suite{Mutants: faults, Args: []string{"-short"}}.Run(t) }
