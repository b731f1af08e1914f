package mirroring

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
	"reconcile.dev/reconcile/controllers/mirror"
	"reconcile.dev/reconcile/controllers/slash"
	"reconcile.dev/reconcile/schemas"
)

// answered are the comments that have a reply of ours on an issue without a read position: its record was lost, and
// comments that were refused before must not take effect now. Accepted comments are known by their specs.
func (in *Inbox) answered(ctx context.Context, f *schemas.MirrorFile, all []github.Comment) (map[int64]bool, error) {
	if !f.Read.Since.IsZero() || len(f.Handled) > 0 {
		return nil, nil
	}
	out := map[int64]bool{}
	for _, c := range all {
		id, isReply := strings.CutPrefix(mirror.Marked(c.Body), "reply/")
		n, err := strconv.ParseInt(id, 10, 64)
		if !isReply || err != nil {
			continue
		}
		me, err := in.Mirror.Remote.Viewer(ctx)
		if err != nil {
			return nil, err
		}
		out[n] = out[n] || sameUser(c.Author, me)
	}
	return out, nil
}

// isOurs reports whether this program wrote a comment: it is on record, its marker matches its text, or it has a
// marker, whose key may be lost, and the token's account as author. Any other comment with a marker is a copy or a
// forgery.
func (in *Inbox) isOurs(ctx context.Context, f *schemas.MirrorFile, c *github.Comment) (bool, error) {
	if slices.ContainsFunc(f.Comments, func(o schemas.MirrorComment) bool { return o.ID == c.ID }) {
		return true, nil
	}
	if mirror.Marked(c.Body) == "" {
		return false, nil
	}
	if _, ok := in.Mirror.Keys.Open(c.Body); ok {
		return true, nil
	}
	me, err := in.Mirror.Remote.Viewer(ctx)
	return err == nil && sameUser(c.Author, me), err
}

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

// isRelevant reports whether a comment may be addressed to this program: it has a command, or its issue has a question
// of an agent. The permissions of other authors are not requested.
func isRelevant(f *schemas.MirrorFile, c *github.Comment) bool {
	return slices.ContainsFunc(f.Comments, func(o schemas.MirrorComment) bool { return strings.HasPrefix(o.Key, "round/") }) ||
		len(slash.Parse(c.Body).Commands) > 0
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
