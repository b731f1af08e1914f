package agents

import (
	"regexp"
	"strings"
	"testing"

	"reconcile.dev/reconcile/controllers/tokens"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/commands"
)

// TestHelpers: who can run a command is told in few words which of them help; nobody else is.
func TestHelpers(t *testing.T) {
	for _, role := range []string{schemas.RoleEngineer, schemas.RoleDesigner, schemas.RoleInspector, schemas.RoleTester, schemas.RoleAcademic} {
		spec := &schemas.AgentSpec{Role: role, Runner: schemas.Runner{ACP: &schemas.ACPRunner{}}}
		all := Helpers(spec)
		if text := strings.Join(all, "\n"); len(all) == 0 || tokens.Count(text) > 120 {
			t.Errorf("%s: %d tokens: %s", role, tokens.Count(text), text)
		}
		spec.Runner = schemas.Runner{HTTP: &schemas.HTTPRunner{}}
		if got := Helpers(spec); got != nil {
			t.Errorf("a model of an endpoint in the role %s is told of commands: %v", role, got)
		}
	}
	if got := Helpers(&schemas.AgentSpec{Role: schemas.RoleArchitect, Runner: schemas.Runner{Command: &schemas.CommandRunner{}}}); got != nil {
		t.Errorf("an architect is told: %v", got)
	}
}

// TestHelpersMayRun: what an agent is told to run needs no question; what repairs files does, for who only reads.
func TestHelpersMayRun(t *testing.T) {
	told := regexp.MustCompile(`reconcile \w+(?: --?\w+| [A-Z]+)*`)
	for role, all := range helpers {
		allow, block := (&commands.Lists{}).For(role)
		rules := commands.Compile(allow, block)
		for _, line := range told.FindAllString(strings.Join(all, "\n"), -1) {
			if v := rules.Decide(commands.Command{Argv: strings.Fields(line)}); v.Decision != commands.Allow {
				t.Errorf("%s: %s: %v, %s", role, line, v.Decision, v.Why)
			}
		}
		if role != schemas.RoleTester {
			continue
		}
		for _, line := range []string{"reconcile inspect --changed", "reconcile test"} {
			if v := rules.Decide(commands.Command{Argv: strings.Fields(line)}); v.Decision != commands.Allow {
				t.Errorf("%s: %s: %v, %s", role, line, v.Decision, v.Why)
			}
		}
		if v := rules.Decide(commands.Command{Argv: []string{"reconcile", "inspect", "--fix"}}); v.Decision != commands.Ask {
			t.Errorf("a tester repairs files: %v", v.Decision)
		}
	}
}
