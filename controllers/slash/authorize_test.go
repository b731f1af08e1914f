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
		{"private member", Actor{Login: "ada", Association: "CONTRIBUTOR", Permission: "write"}, schemas.GitHubCommands{Roles: usual}, true, nil},
		{"private member who reads", Actor{Login: "ada", Association: "NONE", Permission: "read"}, schemas.GitHubCommands{Roles: usual}, false, nil},
		{"collaborator who is no member", Actor{Login: "ada", Association: "COLLABORATOR", Permission: "admin"},
			schemas.GitHubCommands{Roles: roles("OWNER", "MEMBER")}, false, nil},
		{"private member where members do not count", Actor{Login: "ada", Association: "NONE", Permission: "write"},
			schemas.GitHubCommands{Roles: roles("OWNER", "COLLABORATOR")}, false, nil},
		{"app that may write", Actor{Login: "ci", Association: "NONE", Permission: "write", Bot: true},
			schemas.GitHubCommands{Roles: usual}, false, nil},
	} {
		if err := Authorize(c.actor, &c.set); (err == nil) != c.may {
			t.Errorf("%s: %v", c.name, err)
		}
		if got := TeamsToAsk(c.actor, &c.set); !slices.Equal(got, c.ask) {
			t.Errorf("%s: asks about %q, want %q", c.name, got, c.ask)
		}
	}
}

func TestAsksPermission(t *testing.T) {
	t.Parallel()
	members, owners := []string{"OWNER", "MEMBER"}, []string{"OWNER"}
	for _, c := range []struct {
		actor Actor
		set   schemas.GitHubCommands
		asks  bool
	}{
		{Actor{Login: "ada", Association: "NONE"}, schemas.GitHubCommands{Roles: &members}, true},
		{Actor{Login: "ada", Association: "CONTRIBUTOR"}, schemas.GitHubCommands{Roles: &members}, true},
		{Actor{Login: "ada", Association: "NONE"}, schemas.GitHubCommands{Roles: &owners}, false},
		{Actor{Login: "ada", Association: "NONE"}, schemas.GitHubCommands{}, false},
		{Actor{Login: "ada", Association: "NONE"}, schemas.GitHubCommands{Roles: &members, Allow: []string{"ada"}}, false},
		{Actor{Login: "ada", Association: "NONE", Permission: "read"}, schemas.GitHubCommands{Roles: &members}, false},
		{Actor{Login: "ada", Association: "COLLABORATOR"}, schemas.GitHubCommands{Roles: &members}, false},
		{Actor{Login: "ci", Association: "NONE", Bot: true}, schemas.GitHubCommands{Roles: &members}, false},
		{Actor{Login: "ci[bot]", Association: "NONE"}, schemas.GitHubCommands{Roles: &members}, false},
	} {
		if got := AsksPermission(c.actor, &c.set); got != c.asks {
			t.Errorf("%+v with %+v: asks %t", c.actor, c.set, got)
		}
	}
}
