package ops_test

import (
	"testing"

	"reconcile.dev/reconcile/state/mutants"
)

// faults are those in what only people may do, and in who acts, which the tests must notice.
var faults = []mutants.Mutant{
	{"a proof is believed", "ops.go", "(proof != who.Proof || name != who.Name)", "proof != who.Proof && false", "TestPeopleOnlySpecs"},
	{"a run acts under another name", "../engine/caller/caller.go", "case name != \"\" && name != in.Agent:", "case false:", "TestPeopleOnlySpecs"},
	{"a run may do what only people may", "../engine/caller/caller.go", "if in := c.Run(); in != nil {\n\t\treturn NotInRun", "if in := c.Run(); false {\n\t\treturn NotInRun", "TestPeopleOnly"},
	{"a run may replace an invalid spec", "ops.go", "if was != nil && was.Broken() {", "if false {", "TestInvalidSpecsArePeoples"},
	{"checks may be replaced", "../../../../schemas/authority.go", "case !reflect.DeepEqual(n.Land, next.Land), !reflect.DeepEqual(n.Pipeline, next.Pipeline):", "case false:", "TestPeopleOnlySpecs"},
	{"a new node may have checks of its own", "../../../../schemas/authority.go", "{were, are}", "{were}", "TestPeopleOnlySpecs"},
	{"final nodes lose their checks", "../../../../schemas/authority.go", "{s.Nodes, s.Finally}", "{s.Nodes}", "TestPeopleOnlySpecs"},
	{"approvals may be taken away", "../../../../schemas/authority.go", "case n.Approve != nil && !reflect.DeepEqual(n.Approve, next.Approve):", "case false:", "TestPeopleOnlySpecs"},
	{"a DAG may be moved to a session without checks", "../../../../schemas/authority.go", "if now != nil && old.Session != now.Session {", "if false {", "TestPeopleOnlySpecs"},
	{"a run may write a person's preference", "../../../../schemas/authority.go", "if SpecAs[*PreferenceSpec](before).OfPeople() || SpecAs[*PreferenceSpec](after).OfPeople() {", "if false {", "TestPeopleOnlySpecs"},
	{"a run may replace a person's preference", "../../../../schemas/authority.go", "if SpecAs[*PreferenceSpec](before).OfPeople() || ", "if ", "TestPeopleOnlySpecs"},
	{"an agent's choice counts as a person's", "tools.go", "if env.Caller.InRun() {\n\t\tspec.Source", "if false {\n\t\tspec.Source", "TestChooseTool"},
	{"programs of untrusted projects are asked", "tools.go", "\tif !allowed {\n", "\tif false {\n", "TestUntrustedIsNotAsked"},
	{"a link makes a program of the project foreign", "tools.go", "return p.contains(q.Path) || p.contains(filepath.Dir(q.Path))", "return p.contains(filepath.Dir(q.Path))", "TestUntrustedIsNotAsked"},
}

func TestMutants(t *testing.T) { mutants.Suite{Mutants: faults}.Run(t) }
