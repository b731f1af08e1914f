package github

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// askViewer requests the token's account. Tokens of apps, as in workflows, have no user, but a viewer.
func (c *Client) askViewer(ctx context.Context) (User, error) {
	u, _, err := c.api().Users.Get(asking(ctx), "")
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
	m, _, err := c.api().Teams.GetTeamMembershipBySlug(asking(ctx), org, team, login)
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
	p, _, err := c.api().Repositories.GetPermissionLevel(asking(ctx), c.owner, c.name, login)
	if err = unwrapped(err); errors.Is(err, ErrGone) {
		return "none", nil
	}
	return p.GetPermission(), err
}

// Viewer returns the User whom the client's token speaks for. It sends one request per client.
func (c *Client) Viewer(ctx context.Context) (User, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.viewer != nil {
		return *c.viewer, nil
	}
	u, err := c.askViewer(ctx)
	if err != nil {
		return User{}, fmt.Errorf("whom the token speaks for: %w", err)
	}
	c.viewer = &u
	return u, nil
}
