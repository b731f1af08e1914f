package agents

import (
	"strings"
	"testing"

	"reconcile.dev/reconcile/controllers/tokens"
	"reconcile.dev/reconcile/schemas"
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
