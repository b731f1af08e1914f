package slash

import (
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// Actor is the author of a comment, as GitHub tells it, never as the comment does.
type Actor struct {
	Login string
	// Association is the relation to the repository: OWNER, MEMBER, COLLABORATOR, CONTRIBUTOR, …, NONE.
	Association string
	Bot         bool     // an app
	Teams       []string // those of TeamsToAsk that the actor is in
}

// Authorize says why a command of the actor must not act; nil means that it may. Settings without roles let nobody but
// those whom they list.
func Authorize(a Actor, set *schemas.GitHubCommands) error {
	switch {
	case a.Bot || strings.HasSuffix(a.Login, "[bot]") || a.Login == "":
		return fmt.Errorf("apps and bots may not give commands")
	case hasRole(a, set):
		return nil
	}
	for _, who := range set.Allow {
		if strings.EqualFold(who, a.Login) || slices.ContainsFunc(a.Teams, func(t string) bool { return strings.EqualFold(t, who) }) {
			return nil
		}
	}
	return fmt.Errorf("%s may not give commands here: github.commands in %s says who may", inert(a.Login), code(schemas.SettingsPath))
}

func hasRole(a Actor, set *schemas.GitHubCommands) bool {
	return set.Roles != nil && slices.Contains(*set.Roles, a.Association)
}

// TeamsToAsk lists the teams, as organization/team, of which GitHub has to be asked whether the actor is in them: none
// where that decides nothing.
func TeamsToAsk(a Actor, set *schemas.GitHubCommands) []string {
	if a.Bot || Authorize(a, set) == nil {
		return nil
	}
	var out []string
	for _, who := range set.Allow {
		if strings.Contains(who, "/") {
			out = append(out, who)
		}
	}
	return out
}
