package ops_test

import (
	"testing"

	"reconcile.dev/reconcile/state/mutants"
)

// faults are those in what only people may do, and in who acts, which the tests must notice.
var faults = []mutants.Mutant{
	{"a proof is believed", "ops.go", "(proof != who.Proof || name != who.Name)", "proof != who.Proof && false", "TestPeopleOnlySpecs"},
	{"a run acts under another name", "../engine/caller/caller.go", "case name != \"\" && name != in.Agent:", "case false:", "TestPeopleOnlySpecs"},
	{"a run writes what only people may", "ops.go", "what != \"\" {\n\t\t\treturn caller.NotInRun", "what == \"never\" {\n\t\t\treturn caller.NotInRun", "TestPeopleOnlySpecs"},
	{"a run may do what only people may", "../engine/caller/caller.go", "if in := c.Run(); in != nil {\n\t\treturn NotInRun", "if in := c.Run(); false {\n\t\treturn NotInRun", "TestPeopleOnly"},
	{"a run may replace an invalid spec", "ops.go", "if was != nil && was.Broken() {", "if false {", "TestInvalidSpecsArePeoples"},
	{"a run may write a person's preference", "../../../../schemas/authority.go", "if SpecAs[*PreferenceSpec](before).OfPeople() || SpecAs[*PreferenceSpec](after).OfPeople() {", "if false {", "TestPeopleOnlySpecs"},
	{"a run may replace a person's preference", "../../../../schemas/authority.go", "if SpecAs[*PreferenceSpec](before).OfPeople() || ", "if ", "TestPeopleOnlySpecs"},
	{"an agent's choice counts as a person's", "tools.go", "if env.Caller.InRun() {\n\t\tspec.Source", "if false {\n\t\tspec.Source", "TestChooseTool"},
	{"programs of untrusted projects are asked", "tools.go", "\tif !allowed {\n", "\tif false {\n", "TestUntrustedIsNotAsked"},
	{"a link makes a program of the project foreign", "tools.go", "return p.contains(q.Path) || p.contains(filepath.Dir(q.Path))", "return p.contains(filepath.Dir(q.Path))", "TestUntrustedIsNotAsked"},
}

func TestMutants(t *testing.T) { mutants.Suite{Mutants: faults}.Run(t) }
