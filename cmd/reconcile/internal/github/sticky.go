package github

import (
	"context"
	"errors"
	"strings"
	"time"
)

// Stuck is the result of Stick.
type Stuck int

// The results of Stick.
const (
	StuckNothing Stuck = iota // there is no comment, and create was false
	StuckSame                 // the comment is already equal
	StuckEdited
	StuckCreated
)

// Stick makes body the only comment on an issue or pull request that the token's account wrote and that mine recognizes by
// its body: it edits that comment, or creates it if there is none and create is set. Comments of others never change, even
// if mine recognizes them. After a lost answer to a creation, it looks before it creates again. Concurrent callers may each
// create one: callers must serialize.
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
		_, err = c.CreateComment(ctx, issue, body) // deleted since the lookup
		return StuckCreated, err
	}
	return StuckEdited, err
}

// commentBy returns the first comment of an account that mine recognizes, or nil.
func (c *Client) commentBy(ctx context.Context, issue int, who User, mine func(string) bool) (*Comment, error) {
	all, err := c.Comments(ctx, issue, time.Time{})
	for i := range all {
		if all[i].Author.ID == who.ID && mine(all[i].Body) {
			return &all[i], nil
		}
	}
	return nil, err
}

// asKept returns a body without the changes that servers and browsers make.
func asKept(body string) string { return strings.TrimSpace(strings.ReplaceAll(body, "\r\n", "\n")) }
