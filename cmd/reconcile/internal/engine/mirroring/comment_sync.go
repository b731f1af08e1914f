package mirroring

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
	"reconcile.dev/reconcile/controllers/mirror"
	"reconcile.dev/reconcile/schemas"
)

// say ensures that the comments exist on an issue, each once: it creates the missing ones in order, and edits those
// with an outdated digest. Other comments are not touched.
func (m *Mirror) say(ctx context.Context, issue int, comments ...mirror.Comment) error {
	var missing []mirror.Comment
	for _, c := range comments {
		was, err := m.onRecord(ctx, issue, c.Key)
		if err != nil {
			return err
		}
		want := mirror.Digest(c.Body)
		switch {
		case was.ID > 0 && was.Digest == want && was.Intended.IsZero():
			continue
		case was.ID > 0:
			there, err := m.edit(ctx, issue, c, was)
			if err != nil {
				return err
			}
			if there {
				continue
			}
		}
		missing = append(missing, c)
	}
	return m.create(ctx, issue, missing)
}

// onRecord returns the record of a comment; one without an id is empty, or an intent to create it.
func (m *Mirror) onRecord(ctx context.Context, issue int, key string) (schemas.MirrorComment, error) {
	if issue == 0 { // a dry run would have created it
		return schemas.MirrorComment{}, nil
	}
	f, err := m.Records.Issue(ctx, issue)
	if err != nil {
		return schemas.MirrorComment{}, err
	}
	for _, c := range f.Comments {
		if c.Key == key {
			return c, nil
		}
	}
	return schemas.MirrorComment{}, nil
}

// record records the state of comments.
func (m *Mirror) record(ctx context.Context, issue int, is ...schemas.MirrorComment) error {
	if issue == 0 {
		return nil
	}
	return m.Records.changeIssue(ctx, issue, func(f *schemas.MirrorFile) {
		for _, c := range is {
			f.Comments = slices.DeleteFunc(f.Comments, func(o schemas.MirrorComment) bool { return o.Key == c.Key })
			f.Comments = append(f.Comments, c)
		}
	})
}

// edit updates a comment on record. there is false if the comment was deleted, or edited by a user: then it is kept as
// it is, and a new one is created.
func (m *Mirror) edit(ctx context.Context, issue int, c mirror.Comment, was schemas.MirrorComment) (there bool, err error) {
	now, err := m.Remote.GetComment(ctx, was.ID)
	switch {
	case errors.Is(err, github.ErrGone):
		return false, m.forget(ctx, issue, c.Key)
	case err != nil:
		return false, err
	case !m.unedited(now.Body, c.Key, was):
		m.note("comment %d on issue #%d was edited by somebody else: it stays, and another one tells on", was.ID, issue)
		return false, m.forget(ctx, issue, c.Key)
	}
	return true, m.revise(ctx, issue, c, now)
}

// unedited reports whether our comment is as we wrote it: by its marker or, if the marker's key is lost, by the digest
// on record.
func (m *Mirror) unedited(body, key string, was schemas.MirrorComment) bool {
	k, ok := m.Keys.Open(body)
	return ok && k == key || was.Stands != "" && mirror.Digest(body) == was.Stands ||
		mirror.Marked(body) == key && mirror.Digest(mirror.Unsealed(body)) == was.Digest
}

// forget deletes the record of a comment.
func (m *Mirror) forget(ctx context.Context, issue int, key string) error {
	if m.existingComments != nil {
		delete(m.existingComments[issue], key)
	}
	return m.Records.changeIssue(ctx, issue, func(f *schemas.MirrorFile) {
		f.Comments = slices.DeleteFunc(f.Comments, func(o schemas.MirrorComment) bool { return o.Key == key })
	})
}

// revise edits an existing comment of ours, unless it is up to date.
func (m *Mirror) revise(ctx context.Context, issue int, c mirror.Comment, now *github.Comment) error {
	sealed := m.Keys.Seal(c.Key, c.Body)
	if mirror.Digest(now.Body) != mirror.Digest(sealed) {
		edited, err := m.Remote.EditComment(ctx, now.ID, sealed)
		if err != nil {
			return err
		}
		m.report.Edits++
		now.Body = edited.Body
	}
	return m.record(ctx, issue, madeComment(c, now.ID, sealed, now.Body))
}

// madeComment returns the record of an existing comment.
func madeComment(c mirror.Comment, id int64, sealed, stands string) schemas.MirrorComment {
	r := schemas.MirrorComment{Key: c.Key, ID: id, Digest: mirror.Digest(c.Body)}
	if d := mirror.Digest(stands); d != mirror.Digest(sealed) {
		r.Stands = d
	}
	return r
}

// create creates comments without a record. It reads the comments of the issue first, since records can be lost.
func (m *Mirror) create(ctx context.Context, issue int, missing []mirror.Comment) error {
	if len(missing) == 0 {
		return nil
	}
	there, err := m.existing(ctx, issue, false)
	if err != nil {
		return err
	}
	if len(there) > 0 {
		if err := m.recoverLabels(ctx, issue); err != nil {
			return err
		}
	}
	var intended []schemas.MirrorComment
	for _, c := range missing {
		if _, ok := there[c.Key]; !ok {
			intended = append(intended, schemas.MirrorComment{Key: c.Key, Digest: mirror.Digest(c.Body), Intended: recordTime(m.Now())})
		}
	}
	if len(intended) > 0 {
		if err := m.record(ctx, issue, intended...); err != nil {
			return err
		}
	}
	for _, c := range missing {
		if now, ok := there[c.Key]; ok {
			err = m.revise(ctx, issue, c, &now)
		} else {
			err = m.createOne(ctx, issue, c)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// createOne creates an intended comment that does not exist on the issue.
func (m *Mirror) createOne(ctx context.Context, issue int, c mirror.Comment) error {
	sealed := m.Keys.Seal(c.Key, c.Body)
	now, err := m.Remote.CreateComment(ctx, issue, sealed)
	var uncertain *github.Uncertain
	if errors.As(err, &uncertain) {
		there, look := m.existing(ctx, issue, true)
		if found, ok := there[c.Key]; look == nil && ok {
			return m.revise(ctx, issue, c, &found)
		}
	}
	if err != nil {
		return err
	}
	m.report.Comments++
	if m.Dry {
		return nil
	}
	return m.record(ctx, issue, madeComment(c, now.ID, sealed, now.Body))
}

// existing returns our comments on an issue, by key. An issue is read once, and again to refresh a stale list.
func (m *Mirror) existing(ctx context.Context, issue int, again bool) (map[string]github.Comment, error) {
	if there := m.existingComments[issue]; there != nil && !again {
		return there, nil
	}
	if issue == 0 { // a dry run would have created it
		return nil, nil
	}
	all, err := m.Remote.Comments(ctx, issue, time.Time{})
	if err != nil {
		return nil, err
	}
	there := map[string]github.Comment{}
	for _, c := range slices.Backward(all) { // of two, the first counts
		if !strings.Contains(c.Body, "<!-- ") {
			continue
		}
		me, err := m.Remote.Viewer(ctx)
		if err != nil {
			return nil, err
		}
		if key := m.keyIn(c.Body); key != "" && sameUser(c.Author, me) {
			there[key] = c
		}
	}
	if m.existingComments == nil {
		m.existingComments = map[int]map[string]github.Comment{}
	}
	m.existingComments[issue] = there
	return there, nil
}

// keyIn returns the key in the marker of a text of ours, "" for other texts. If the signing key is new, existing
// comments cannot be signed with it: then the marker alone counts, so that a tree that keeps no records creates nothing
// twice.
func (m *Mirror) keyIn(text string) string {
	key, ok := m.Keys.Open(text)
	if !ok && m.Records.NewKey() {
		return mirror.Marked(text)
	}
	return key
}

// withoutComment returns a list without the entry of a comment.
func withoutComment(list []schemas.MirrorHandled, comment int64) []schemas.MirrorHandled {
	return slices.DeleteFunc(list, func(h schemas.MirrorHandled) bool { return h.Comment == comment })
}
