package tools

import (
	"testing"

	"reconcile.dev/reconcile/state/mutants"
)

// faults are those that let a change pass because less is looked at.
var faults = []mutants.Mutant{
	{"nothing looks at what used a removed file", "removals.go", "if len(gone) == 0 || !t.Role.joins() {", "if true {", "TestRemovals"},
	{"a linter of files judges what used a removed one", "removals.go", "(r.ByPackage() || !r.Named())", "true", "TestRemovals"},
	{"packages that import a removed file are passed over", "removals.go", "folders[checks.Folder(f)] == \"\" && !slices.Contains(j.Asked, f)", "!slices.Contains(j.Asked, f)", "TestRemovals"},
	{"a package that is gone has no users", "removals.go", "return !hasFolder(left, checks.Folder(f))", "return false", "TestRemovals"},
}

func TestMutants(t *testing.T) { mutants.Suite{Mutants: faults}.Run(t) }
