package github

import (
	"context"
	"errors"
	"strings"
	"time"
)

// Stuck is what Stick did.
type Stuck int

// What Stick may have done.
const (
	StuckNothing Stuck = iota // there is no comment, and none was to be made
	StuckSame                 // the comment says so already
	StuckEdited
	StuckCreated
)

// Stick makes body the one comment on an issue or pull request that the token's account wrote and that mine knows by its
// body: it edits that, however often it is called, or creates it where there is none and create says so. What others
// wrote is left alone, also what looks like ours. When the answer to a creation is lost, it looks before it creates again.
// Of two callers at once each may create one: callers take turns.
func (c *Client) Stick(ctx context.Context, issue int, mine func(body string) bool, body string, create bool) (Stuck, error) {
	var uncertain *Uncertain
	for again := true; ; again = false {
		did, err := c.stick(ctx, issue, mine, body, create)
		if !again || !errors.As(err, &uncertain) {
			return did, err
		}
	}
}

func (c *Client) stick(ctx context.Context, issue int, mine func(string) bool, body string, create bool) (Stuck, error) {
	me, err := c.Viewer(ctx)
	if err != nil {
		return StuckNothing, err
	}
	old, err := c.commentBy(ctx, issue, me, mine)
	switch {
	case err != nil:
		return StuckNothing, err
	case old == nil && !create:
		return StuckNothing, nil
	case old == nil:
		_, err = c.CreateComment(ctx, issue, body)
		return StuckCreated, err
	case asKept(old.Body) == asKept(body):
		return StuckSame, nil
	}
	if _, err = c.EditComment(ctx, old.ID, body); errors.Is(err, ErrGone) && create {
		_, err = c.CreateComment(ctx, issue, body) // somebody deleted it since we looked
		return StuckCreated, err
	}
	return StuckEdited, err
}

// commentBy returns the first comment of an account that mine knows; nil if there is none.
func (c *Client) commentBy(ctx context.Context, issue int, who User, mine func(string) bool) (*Comment, error) {
	all, err := c.Comments(ctx, issue, time.Time{})
	for i := range all {
		if all[i].Author.ID == who.ID && mine(all[i].Body) {
			return &all[i], nil
		}
	}
	return nil, err
}

// asKept is a body without what servers and browsers change of one.
func asKept(body string) string { return strings.TrimSpace(strings.ReplaceAll(body, "\r\n", "\n")) }
