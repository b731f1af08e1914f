package github

import (
	"context"
	"errors"
	"fmt"
	"strings"

	gogithub "github.com/google/go-github/v60/github"
)

// askViewer requests the token's account. Tokens of apps, as in workflows, have no user, but a viewer.
func (c *Client) askViewer(ctx context.Context) (User, error) {
	u, _, err := c.api.Users.Get(asking(ctx), "")
	if err = unwrapped(err); err == nil {
		return userOf(u), nil
	}
	if !errors.Is(err, ErrForbidden) {
		return User{}, err
	}
	var answer struct {
		Viewer struct {
			Login      string
			DatabaseID int64 `json:"databaseId"`
		}
	}
	if err := c.query(asking(ctx), "query { viewer { login databaseId } }", nil, &answer); err != nil {
		return User{}, err
	}
	v := answer.Viewer
	return User{Login: v.Login, ID: v.DatabaseID, Bot: strings.HasSuffix(v.Login, "[bot]")}, nil
}

// isLogin reports whether s is a valid account name; names of apps end in [bot].
func isLogin(s string) bool { return isName(strings.TrimSuffix(s, "[bot]"), "_-") }

// InTeam reports whether an account is an active member of a team of an organization. A team that the token cannot see has
// no members.
func (c *Client) InTeam(ctx context.Context, org, team, login string) (bool, error) {
	for _, name := range []string{org, team} {
		if !isName(name, "._-") {
			return false, fmt.Errorf("%q is not the name of an organization or team: %w", name, ErrInvalid)
		}
	}
	if !isLogin(login) {
		return false, fmt.Errorf("%q is not the name of an account: %w", login, ErrInvalid)
	}
	m, _, err := c.api.Teams.GetTeamMembershipBySlug(asking(ctx), org, team, login)
	if err = unwrapped(err); errors.Is(err, ErrGone) {
		return false, nil
	}
	return m.GetState() == "active", err
}

// Permission returns an account's permission in the repository: admin, write, read or none.
func (c *Client) Permission(ctx context.Context, login string) (string, error) {
	if !isLogin(login) {
		return "", fmt.Errorf("%q is not the name of an account: %w", login, ErrInvalid)
	}
	p, _, err := c.api.Repositories.GetPermissionLevel(asking(ctx), c.owner, c.name, login)
	if err = unwrapped(err); errors.Is(err, ErrGone) {
		return "none", nil
	}
	return p.GetPermission(), err
}

// React creates a reaction with a content to a comment, as the token's account. It is idempotent.
func (c *Client) React(ctx context.Context, comment int64, content string) error {
	_, _, err := c.api.Reactions.CreateIssueCommentReaction(repeating(ctx), c.owner, c.name, comment, content)
	return unwrapped(err)
}

// Unreact deletes the viewer's reaction with a content from the reactions of a comment. A missing reaction is not an
// error.
func (c *Client) Unreact(ctx context.Context, comment int64, content string) error {
	me, err := c.Viewer(ctx)
	if err != nil {
		return err
	}
	there, err := pages(func(page gogithub.ListOptions) ([]*gogithub.Reaction, *gogithub.Response, error) {
		return c.api.Reactions.ListIssueCommentReactions(asking(ctx), c.owner, c.name, comment, &page)
	})
	if err != nil {
		return err
	}
	for _, r := range there {
		if r.GetContent() != content || r.GetUser().GetID() != me.ID {
			continue
		}
		_, err := c.api.Reactions.DeleteIssueCommentReaction(repeating(ctx), c.owner, c.name, comment, r.GetID())
		if err = unwrapped(err); err != nil && !errors.Is(err, ErrGone) {
			return err
		}
	}
	return nil
}
