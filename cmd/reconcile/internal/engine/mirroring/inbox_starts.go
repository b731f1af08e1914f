package mirroring

import (
	"context"
	"slices"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
	"reconcile.dev/reconcile/controllers/mirror"
	"reconcile.dev/reconcile/controllers/slash"
	"reconcile.dev/reconcile/schemas"
)

// startsWithin is how old a comment may be that starts a workflow on an issue without a comment of ours.
const startsWithin = 24 * time.Hour

// startsSince is the time from which such comments are read. Within an hour it is the same, so that the request is conditional.
func startsSince(now time.Time) time.Time { return now.Add(-startsWithin).Truncate(time.Hour) }

// collectStarts lists the comments that start a workflow on the issues without a comment of ours, of people who may. Other
// comments there were not meant for this program, and get no reply.
func (in *Inbox) collectStarts(ctx context.Context) ([]unread, error) {
	recent, err := in.Client.RecentComments(ctx, startsSince(in.Mirror.Now()))
	if err != nil {
		return nil, in.later(err)
	}
	var out []unread
	for i := range recent {
		c := &recent[i]
		if c.Author.Bot || !slash.Starts(c.Body) {
			continue
		}
		f, err := in.Mirror.Records.Issue(ctx, c.Issue)
		if err != nil {
			return nil, err
		}
		who, may, err := in.starter(ctx, f, c)
		if err != nil {
			return nil, in.later(err)
		}
		if may {
			out = add(out, f, slash.Comment{ID: c.ID, Author: who, Body: c.Body, Created: c.Created,
				Edited: c.Updated.Sub(c.Created) > editTolerance, Marked: mirror.Marked(c.Body) != ""})
		}
	}
	return in.readTexts(ctx, out)
}

// starter returns who wrote a comment that starts a workflow, and whether it is to be read: it is new, on an issue without a comment of
// ours, and its author may give commands.
func (in *Inbox) starter(ctx context.Context, f *schemas.MirrorFile, c *github.Comment) (slash.Actor, bool, error) {
	if firstOf(f) != 0 || slices.ContainsFunc(f.Handled, func(h schemas.MirrorHandled) bool { return h.Comment == c.ID }) {
		return slash.Actor{}, false, nil
	}
	if mine, err := in.isOurs(ctx, f, c); err != nil || mine {
		return slash.Actor{}, false, err
	}
	return in.actor(ctx, f, c)
}

// add adds a comment to those of its issue.
func add(all []unread, f *schemas.MirrorFile, c slash.Comment) []unread {
	i := slices.IndexFunc(all, func(u unread) bool { return u.issue.File.Issue == f.Issue })
	if i < 0 {
		i, all = len(all), append(all, unread{issue: slash.Issue{File: f}, since: f.Read.Since.Time})
	}
	all[i].issue.Comments = append(all[i].issue.Comments, c)
	return all
}

// readTexts reads what the issues say. One that cannot be read is left out.
func (in *Inbox) readTexts(ctx context.Context, all []unread) (out []unread, err error) {
	for _, u := range all {
		switch err := in.readText(ctx, &u.issue); {
		case err == nil:
			out = append(out, u)
		case isLocal(err):
			in.result.note("issue #%d is not read: %v", u.issue.File.Issue, err)
		default:
			return out, in.later(err)
		}
	}
	return out, nil
}

// later keeps an error that leaves work for the next call, and returns others.
func (in *Inbox) later(err error) error {
	if !github.Later(err) {
		return err
	}
	in.result.Later = err
	return nil
}
