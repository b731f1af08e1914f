package agents

import "reconcile.dev/reconcile/schemas"

// helpers are the commands of reconcile that help agents of a role in their work, with when to use each.
var helpers = map[string][]string{
	schemas.RoleEngineer:  writing,
	schemas.RoleDesigner:  writing,
	schemas.RoleInspector: {usesTools, "reconcile inspect --changed: what these find in the change.", checksStyle, "reconcile deps: what is deprecated, unused or undeclared.", looksAtChange},
	schemas.RoleTester: {usesTools, "reconcile test --related FILE: the tests that are about a file.", "reconcile style, before you write tests: how the project writes code.",
		"reconcile deps NAME, before you replace a dependency in a test: its version, and which of its names are used."},
	schemas.RoleAcademic: {"reconcile deps NAME: the version that the project has, what it uses of it, and whether it is deprecated."},
}

const (
	usesTools     = "reconcile tools: the linters, formatters and test frameworks that the project uses."
	checksStyle   = "reconcile style --check FILE: where a file is not written as the others are."
	looksAtChange = "reconcile preview, for more than 50 changed lines: the change, with what is sensitive in it."
)

var writing = []string{"reconcile style, before you write: how the project writes code.",
	"reconcile deps NAME, before you import: its version, its import path, and which of its names are used.",
	"reconcile inspect --changed and reconcile test --changed, before you end: the project's own linters and tests (reconcile tools lists them).", looksAtChange}

// Helpers are the commands of reconcile that help an agent in its work, by its role; none for one that only talks to a model or is a person.
func Helpers(spec *schemas.AgentSpec) []string {
	if spec.Runner.HTTP != nil || spec.Runner.Human != nil {
		return nil
	}
	return helpers[spec.Role]
}
