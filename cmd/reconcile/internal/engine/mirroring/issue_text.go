package mirroring

import (
	"context"
	"strings"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
	"reconcile.dev/reconcile/controllers/derive"
	"reconcile.dev/reconcile/controllers/mirror"
	"reconcile.dev/reconcile/controllers/slash"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/secrets"
)

// mostSaid bounds how many comments of an issue a workflow is started with.
const mostSaid = 100

// IssueReader is the part of GitHub's API for reading what an issue says; a *github.Client implements it.
type IssueReader interface {
	Issue(ctx context.Context, number int) (*github.Issue, error)
	Comments(ctx context.Context, issue int, since time.Time) ([]github.Comment, error)
}

// ReadIssue reads the text of an issue, and the newest hundred comments of people that are not commands. Secrets and private texts are
// removed.
func ReadIssue(ctx context.Context, from IssueReader, number int) (derive.Issue, error) {
	is, err := from.Issue(ctx, number)
	if err != nil {
		return derive.Issue{}, err
	}
	said, err := from.Comments(ctx, number, time.Time{})
	if err != nil {
		return derive.Issue{}, err
	}
	out := derive.Issue{Text: redacted("# " + strings.Join(strings.Fields(is.Title), " ") + "\n\n" + is.Body)}
	for _, c := range said {
		if !c.Author.Bot && mirror.Marked(c.Body) == "" && len(slash.Parse(c.Body).Commands) == 0 {
			out.Comments = append(out.Comments, schemas.IssueComment{From: c.Author.Login, Text: redacted(c.Body)})
		}
	}
	out.Comments = out.Comments[max(0, len(out.Comments)-mostSaid):]
	return out, nil
}

func redacted(text string) string { return strings.TrimSpace(secrets.Redact(text)) }
