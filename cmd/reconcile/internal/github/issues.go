package github

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	gogithub "github.com/google/go-github/v60/github"
)

const (
	perPage  = 100  // the most that GitHub puts on a page
	maxPages = 1000 // of a list; a longer one never ends, or takes too long
)

// Issue gets the issue with a number from the API, or the issue side of a pull request. ErrGone: it was deleted.
func (c *Client) Issue(ctx context.Context, number int) (*Issue, error) {
	if err := numbered(number); err != nil {
		return nil, err
	}
	i, _, err := c.api().Issues.Get(asking(ctx), c.owner, c.name, number)
	if err != nil {
		return nil, unwrapped(err)
	}
	return issueOf(i), nil
}

// CreateIssue creates a NewIssue on GitHub with its title, body and labels; *Uncertain: perhaps. A dry client returns
// it with the number 0.
func (c *Client) CreateIssue(ctx context.Context, n NewIssue) (*Issue, error) {
	r := &gogithub.IssueRequest{Title: &n.Title, Body: &n.Body}
	if len(n.Labels) > 0 {
		r.Labels = &n.Labels
	}
	i, _, err := c.api().Issues.Create(asking(ctx), c.owner, c.name, r)
	if err != nil {
		return nil, unwrapped(err)
	}
	if c.o.Dry != nil {
		return &Issue{Title: n.Title, Body: n.Body, Open: true, Labels: n.Labels}, nil
	}
	return issueOf(i), nil
}

// EditIssue replaces the title and the body of an issue, unless "". ErrGone: it was deleted. It is idempotent.
func (c *Client) EditIssue(ctx context.Context, number int, title, body string) error {
	if err := numbered(number); err != nil {
		return err
	}
	r := new(gogithub.IssueRequest)
	if title != "" {
		r.Title = &title
	}
	if body != "" {
		r.Body = &body
	}
	_, _, err := c.api().Issues.Edit(repeating(ctx), c.owner, c.name, number, r)
	return unwrapped(err)
}

// FindIssues lists the issues and pull requests of the repository with a label ("": all), open and closed, that changed
// since a time (zero: ever), the oldest first.
func (c *Client) FindIssues(ctx context.Context, label string, since time.Time) ([]Issue, error) {
	o := gogithub.IssueListByRepoOptions{State: "all", Sort: "created", Direction: "asc", Since: since.UTC()}
	if label != "" {
		o.Labels = []string{label}
	}
	found, err := issuePages(func(page gogithub.ListOptions) ([]*gogithub.Issue, *gogithub.Response, error) {
		o.ListOptions = page
		return c.api().Issues.ListByRepo(asking(ctx), c.owner, c.name, &o)
	})
	if err != nil {
		return nil, err
	}
	issues := make([]Issue, 0, len(found))
	for _, i := range found {
		issues = append(issues, *issueOf(i))
	}
	return issues, nil
}

// Comments returns the comments on an issue that were written or changed at or after since (zero: all), the oldest first.
// If nothing changed since the last time, it costs one request per hundred comments, and nothing of the limit.
func (c *Client) Comments(ctx context.Context, issue int, since time.Time) ([]Comment, error) {
	if c.o.Dry != nil && issue == 0 {
		return nil, nil // an issue that a dry client would have created
	}
	if err := numbered(issue); err != nil {
		return nil, err
	}
	return c.comments(ctx, issue, gogithub.IssueListCommentsOptions{Since: sinceOf(since)})
}

// RecentComments returns the comments since a time on all issues and pull requests, the oldest first: one request where
// Comments needs one per issue. It compares since with when a comment was written or last changed, inclusively.
func (c *Client) RecentComments(ctx context.Context, since time.Time) ([]Comment, error) {
	sort, direction := "created", "asc"
	return c.comments(ctx, 0, gogithub.IssueListCommentsOptions{Sort: &sort, Direction: &direction, Since: sinceOf(since)})
}

func (c *Client) comments(ctx context.Context, issue int, o gogithub.IssueListCommentsOptions) ([]Comment, error) {
	found, err := issuePages(func(page gogithub.ListOptions) ([]*gogithub.IssueComment, *gogithub.Response, error) {
		o.ListOptions = page
		return c.api().Issues.ListComments(asking(ctx), c.owner, c.name, issue, &o)
	})
	if err != nil {
		return nil, err
	}
	comments := make([]Comment, 0, len(found))
	for _, k := range found {
		comments = append(comments, *commentOf(k))
	}
	return comments, nil
}

// GetComment returns a comment. ErrGone: it was deleted.
func (c *Client) GetComment(ctx context.Context, id int64) (*Comment, error) {
	k, _, err := c.api().Issues.GetComment(asking(ctx), c.owner, c.name, id)
	if err != nil {
		return nil, unwrapped(err)
	}
	return commentOf(k), nil
}

// CreateComment creates a comment with a body on an issue of GitHub; *Uncertain: perhaps. A dry client returns it with
// the id 0.
func (c *Client) CreateComment(ctx context.Context, issue int, body string) (*Comment, error) {
	if err := numbered(issue); err != nil && c.o.Dry == nil {
		return nil, err
	}
	k, _, err := c.api().Issues.CreateComment(asking(ctx), c.owner, c.name, issue, &gogithub.IssueComment{Body: &body})
	if err != nil {
		return nil, unwrapped(err)
	}
	if c.o.Dry != nil {
		return &Comment{Issue: issue, Body: body}, nil
	}
	return commentOf(k), nil
}

// EditComment edits a comment by its id: it replaces the body. ErrGone: it was deleted. It is idempotent.
func (c *Client) EditComment(ctx context.Context, id int64, body string) (*Comment, error) {
	k, _, err := c.api().Issues.EditComment(repeating(ctx), c.owner, c.name, id, &gogithub.IssueComment{Body: &body})
	if err != nil {
		return nil, unwrapped(err)
	}
	if c.o.Dry != nil {
		return &Comment{ID: id, Body: body}, nil
	}
	return commentOf(k), nil
}

// EnsureLabel creates a label of the repository. An existing label does not change, whatever its colour.
func (c *Client) EnsureLabel(ctx context.Context, l Label) error {
	there := func() error {
		_, _, err := c.api().Issues.GetLabel(asking(ctx), c.owner, c.name, url.PathEscape(l.Name))
		return unwrapped(err)
	}
	if err := there(); !errors.Is(err, ErrGone) {
		return err
	}
	label := &gogithub.Label{Name: &l.Name, Color: &l.Color}
	if l.Description != "" {
		label.Description = &l.Description
	}
	_, _, err := c.api().Issues.CreateLabel(repeating(ctx), c.owner, c.name, label)
	if err = unwrapped(err); errors.Is(err, ErrInvalid) && there() == nil {
		return nil // another process created it meanwhile, or an earlier try whose answer was lost
	}
	return err
}

// AddLabels adds labels by their names to an issue, with a POST request. Present labels stay, and GitHub creates labels
// that the repository lacks.
func (c *Client) AddLabels(ctx context.Context, issue int, names []string) error {
	path := fmt.Sprintf("repos/%s/issues/%d/labels", c.o.Repo, issue)
	// GitHub recommends an object; go-github sends an array.
	req, err := c.api().NewRequest(http.MethodPost, path, map[string][]string{"labels": names})
	if err != nil {
		return err
	}
	_, err = c.api().Do(repeating(ctx), req, nil)
	return unwrapped(err)
}

// RemoveLabel removes a label from an issue. A missing label is not an error.
func (c *Client) RemoveLabel(ctx context.Context, issue int, name string) error {
	_, err := c.api().Issues.RemoveLabelForIssue(repeating(ctx), c.owner, c.name, issue, url.PathEscape(name))
	if err = unwrapped(err); errors.Is(err, ErrGone) {
		return nil
	}
	return err
}

// issuePages calls get for every page, from the first to the last, and returns the items.
//
// A full page that did not change is not necessarily the last one, even if it was when it was cached: the next item is on a
// new page. So the page after it is requested, too.
func issuePages[T any](get func(gogithub.ListOptions) ([]T, *gogithub.Response, error)) ([]T, error) {
	var all []T
	for page := 1; page <= maxPages; page++ {
		items, resp, err := get(gogithub.ListOptions{Page: page, PerPage: perPage})
		if err != nil {
			return nil, unwrapped(err)
		}
		all = append(all, items...)
		if resp.NextPage <= page && !(cachedHeaders(resp.Response) && len(items) == perPage) {
			return all, nil
		}
	}
	return nil, fmt.Errorf("a list on GitHub has more than %d entries: %w", maxPages*perPage, ErrInvalid)
}

func sinceOf(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// React creates a reaction with a content to a comment, as the token's account. It is idempotent.
func (c *Client) React(ctx context.Context, comment int64, content string) error {
	_, _, err := c.api().Reactions.CreateIssueCommentReaction(repeating(ctx), c.owner, c.name, comment, content)
	return unwrapped(err)
}

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
// its body: it edits that comment, or creates it without one and create is set. Comments of others never change, even
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

func issueOf(i *gogithub.Issue) *Issue {
	labels := make([]string, 0, len(i.Labels))
	for _, l := range i.Labels {
		labels = append(labels, l.GetName())
	}
	return &Issue{
		Number: i.GetNumber(), Title: i.GetTitle(), Body: i.GetBody(), Author: userOf(i.User),
		Open: i.GetState() == "open", Labels: labels, PullRequest: i.IsPullRequest(),
	}
}
