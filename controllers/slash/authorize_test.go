package slash

import (
	"slices"
	"testing"

	"reconcile.dev/reconcile/schemas"
)

func TestAuthorize(t *testing.T) {
	t.Parallel()
	roles := func(r ...string) *[]string { return &r }
	usual := roles("OWNER", "MEMBER", "COLLABORATOR")
	for _, c := range []struct {
		name  string
		actor Actor
		set   schemas.GitHubCommands
		may   bool
		ask   []string // the teams that GitHub has to be asked about
	}{
		{"owner", Actor{Login: "ada", Association: "OWNER"}, schemas.GitHubCommands{Roles: usual}, true, nil},
		{"member", Actor{Login: "ada", Association: "MEMBER"}, schemas.GitHubCommands{Roles: usual}, true, nil},
		{"collaborator", Actor{Login: "ada", Association: "COLLABORATOR"}, schemas.GitHubCommands{Roles: usual}, true, nil},
		{"contributor", Actor{Login: "ada", Association: "CONTRIBUTOR"}, schemas.GitHubCommands{Roles: usual}, false, nil},
		{"nobody", Actor{Login: "ada", Association: "NONE"}, schemas.GitHubCommands{Roles: usual}, false, nil},
		{"role not told", Actor{Login: "ada"}, schemas.GitHubCommands{Roles: usual}, false, nil},
		{"role in another case", Actor{Login: "ada", Association: "owner"}, schemas.GitHubCommands{Roles: usual}, false, nil},
		{"no settings", Actor{Login: "ada", Association: "OWNER"}, schemas.GitHubCommands{}, false, nil},
		{"no roles", Actor{Login: "ada", Association: "OWNER"}, schemas.GitHubCommands{Roles: roles()}, false, nil},
		{"listed", Actor{Login: "Ada", Association: "NONE"}, schemas.GitHubCommands{Roles: roles(), Allow: []string{"ada"}}, true, nil},
		{"listed in part", Actor{Login: "ad", Association: "NONE"}, schemas.GitHubCommands{Roles: usual, Allow: []string{"ada"}}, false, nil},
		{"team unknown", Actor{Login: "ada", Association: "NONE"},
			schemas.GitHubCommands{Roles: usual, Allow: []string{"bob", "acme/core", "acme/ops"}}, false, []string{"acme/core", "acme/ops"}},
		{"team", Actor{Login: "ada", Association: "NONE", Teams: []string{"acme/core"}},
			schemas.GitHubCommands{Roles: usual, Allow: []string{"ACME/core"}}, true, nil},
		{"other team", Actor{Login: "ada", Association: "NONE", Teams: []string{"acme/ops"}},
			schemas.GitHubCommands{Roles: usual, Allow: []string{"acme/core"}}, false, []string{"acme/core"}},
		{"login like a team", Actor{Login: "acme/core", Association: "NONE"},
			schemas.GitHubCommands{Roles: usual, Allow: []string{"acme"}}, false, nil},
		{"app", Actor{Login: "ci", Association: "OWNER", Bot: true}, schemas.GitHubCommands{Roles: usual, Allow: []string{"ci"}}, false, nil},
		{"app by name", Actor{Login: "ci[bot]", Association: "MEMBER"}, schemas.GitHubCommands{Roles: usual}, false, nil},
		{"ghost", Actor{Association: "OWNER"}, schemas.GitHubCommands{Roles: usual}, false, nil},
	} {
		if err := Authorize(c.actor, &c.set); (err == nil) != c.may {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := TeamsToAsk(c.actor, &c.set); !slices.Equal(got, c.ask) {
			t.Errorf("%s: asks about %q, want %q", c.name, got, c.ask)
		}
	}
}
