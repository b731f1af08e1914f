package mirroring

import (
	"context"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
	"reconcile.dev/reconcile/controllers/slash"
	"reconcile.dev/reconcile/schemas"
)

// actor returns the author of a comment with the relevant teams and permission, and whether the author may give
// commands.
func (in *Inbox) actor(ctx context.Context, f *schemas.MirrorFile, c *github.Comment) (slash.Actor, bool, error) {
	a := slash.Actor{Login: c.Author.Login, Association: c.Association, Bot: c.Author.Bot}
	for _, team := range slash.TeamsToAsk(a, &in.Commands) {
		is, err := in.inTeam(ctx, team, a.Login)
		if err != nil {
			return a, false, err
		}
		if is {
			a.Teams = append(a.Teams, team)
			break
		}
	}
	if slash.AsksPermission(a, &in.Commands) && isRelevant(f, c) {
		var err error
		if a.Permission, err = in.permission(ctx, a.Login); err != nil {
			return a, false, err
		}
	}
	return a, slash.Authorize(a, &in.Commands) == nil, nil
}

// permission returns the permission of a login, requested once. If the token may not request it, no login has a
// permission.
func (in *Inbox) permission(ctx context.Context, login string) (string, error) {
	may, known := in.may[login]
	if known {
		return may, nil
	}
	may, err := in.Client.Permission(ctx, login)
	if isLocal(err) {
		in.result.note("whether somebody may write to the repository cannot be told, so members whose membership is private "+
			"count only if github.commands.allow lists them: %v", err)
		may, err = "none", nil
	}
	if err != nil {
		return "", err
	}
	if in.may == nil {
		in.may = map[string]string{}
	}
	in.may[login] = may
	return may, nil
}

// inTeam returns whether a login is in a team, requested once. A team that the token cannot see counts as empty.
func (in *Inbox) inTeam(ctx context.Context, team, login string) (bool, error) {
	key := team + " " + login
	is, known := in.teams[key]
	if known {
		return is, nil
	}
	org, name, _ := strings.Cut(team, "/")
	is, err := in.Client.InTeam(ctx, org, name, login)
	if isLocal(err) {
		in.result.note("whether somebody is in the team %s cannot be told: %v", team, err)
		is, err = false, nil
	}
	if err != nil {
		return false, err
	}
	if in.teams == nil {
		in.teams = map[string]bool{}
	}
	in.teams[key] = is
	return is, nil
}

// sameUser compares by id if it is known: names can change.
func sameUser(a, b github.User) bool {
	if a.ID != 0 && b.ID != 0 {
		return a.ID == b.ID
	}
	return a.Login != "" && a.Login == b.Login
}
