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

// answered are the comments to which a reply of ours stands on an issue of which nothing was read: its record was lost,
// and what was refused then must not act now. What was accepted is known by its specs.
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
		me, err := in.Remote.Viewer(ctx)
		if err != nil {
			return nil, err
		}
		out[n] = out[n] || sameUser(c.Author, me)
	}
	return out, nil
}

// mine reports whether a comment is one of this program: it is on record, its marker fits its text, or the token's account
// wrote it, with a marker of which the key may be lost. What else holds a marker was copied or made up.
func (in *Inbox) mine(ctx context.Context, f *schemas.MirrorFile, c *github.Comment) (bool, error) {
	if slices.ContainsFunc(f.Comments, func(o schemas.MirrorComment) bool { return o.ID == c.ID }) {
		return true, nil
	}
	if mirror.Marked(c.Body) == "" {
		return false, nil
	}
	if _, ok := in.Keys.Open(c.Body); ok {
		return true, nil
	}
	me, err := in.Remote.Viewer(ctx)
	return err == nil && sameUser(c.Author, me), err
}

// actor is the author of a comment, with what counts of his teams and permission, and whether he may give commands.
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
	if slash.AsksPermission(a, &in.Commands) && saysSomething(f, c) {
		var err error
		if a.Permission, err = in.permission(ctx, a.Login); err != nil {
			return a, false, err
		}
	}
	return a, slash.Authorize(a, &in.Commands) == nil, nil
}

// saysSomething reports whether a comment may be meant for this program: it has a command, or an agent asked something
// on its issue. Of all others nobody has to know who may what.
func saysSomething(f *schemas.MirrorFile, c *github.Comment) bool {
	return slices.ContainsFunc(f.Comments, func(o schemas.MirrorComment) bool { return strings.HasPrefix(o.Key, "round/") }) ||
		len(slash.Parse(c.Body).Commands) > 0
}

// permission asks once for each login. What the token may not ask gives nobody a right.
func (in *Inbox) permission(ctx context.Context, login string) (string, error) {
	may, known := in.may[login]
	if known {
		return may, nil
	}
	may, err := in.Listener.Permission(ctx, login)
	if ofOne(err) {
		in.heard.note("whether somebody may write to the repository cannot be told, so members whose membership is private "+
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

// inTeam asks once for each team and login. A team that the token does not see has nobody in it.
func (in *Inbox) inTeam(ctx context.Context, team, login string) (bool, error) {
	key := team + " " + login
	is, known := in.teams[key]
	if known {
		return is, nil
	}
	org, name, _ := strings.Cut(team, "/")
	is, err := in.Listener.InTeam(ctx, org, name, login)
	if ofOne(err) {
		in.heard.note("whether somebody is in the team %s cannot be told: %v", team, err)
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
