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

// Say has comments of ours on an issue, each once: those that are missing are made, in their order, and those that say
// something else are edited. Other comments stay as they are.
func (m *Mirror) Say(ctx context.Context, issue int, comments ...mirror.Comment) error {
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

// onRecord is what is on record of a comment; one without an id says nothing, or that it was about to be made.
func (m *Mirror) onRecord(ctx context.Context, issue int, key string) (schemas.MirrorComment, error) {
	if issue == 0 { // a dry run would have made it
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

// record notes how a comment stands.
func (m *Mirror) record(ctx context.Context, issue int, is ...schemas.MirrorComment) error {
	if issue == 0 {
		return nil
	}
	return m.Records.ChangeIssue(ctx, issue, func(f *schemas.MirrorFile) {
		for _, c := range is {
			f.Comments = slices.DeleteFunc(f.Comments, func(o schemas.MirrorComment) bool { return o.Key == c.Key })
			f.Comments = append(f.Comments, c)
		}
	})
}

// edit has a comment that is on record say something else. there is false if it is gone, or is not as we left it: then it
// is somebody else's, stays as it is, and another one is made.
func (m *Mirror) edit(ctx context.Context, issue int, c mirror.Comment, was schemas.MirrorComment) (there bool, err error) {
	now, err := m.Remote.GetComment(ctx, was.ID)
	switch {
	case errors.Is(err, github.ErrGone):
		return false, m.forget(ctx, issue, c.Key)
	case err != nil:
		return false, err
	case !m.ours(now.Body, c.Key, was):
		m.note("comment %d on issue #%d was edited by somebody else: it stays, and another one tells on", was.ID, issue)
		return false, m.forget(ctx, issue, c.Key)
	}
	return true, m.revise(ctx, issue, c, now)
}

// ours reports whether a comment of ours is as we left it: by its marker or, where that was signed with a key that is not
// known any more, by what is on record of its text.
func (m *Mirror) ours(body, key string, was schemas.MirrorComment) bool {
	k, ok := m.Keys.Open(body)
	return ok && k == key || was.Stands != "" && mirror.Digest(body) == was.Stands ||
		mirror.Marked(body) == key && mirror.Digest(mirror.Unsealed(body)) == was.Digest
}

// forget notes that a comment does not stand there any more.
func (m *Mirror) forget(ctx context.Context, issue int, key string) error {
	if m.there != nil {
		delete(m.there[issue], key)
	}
	return m.Records.ChangeIssue(ctx, issue, func(f *schemas.MirrorFile) {
		f.Comments = slices.DeleteFunc(f.Comments, func(o schemas.MirrorComment) bool { return o.Key == key })
	})
}

// revise edits a comment of ours that stands there, unless it says what it should.
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
	return m.record(ctx, issue, made(c, now.ID, sealed, now.Body))
}

// made is the record of a comment that stands there.
func made(c mirror.Comment, id int64, sealed, stands string) schemas.MirrorComment {
	r := schemas.MirrorComment{Key: c.Key, ID: id, Digest: mirror.Digest(c.Body)}
	if d := mirror.Digest(stands); d != mirror.Digest(sealed) {
		r.Stands = d
	}
	return r
}

// create makes comments that are not on record. It looks at what stands on the issue first: records can be lost.
func (m *Mirror) create(ctx context.Context, issue int, missing []mirror.Comment) error {
	if len(missing) == 0 {
		return nil
	}
	there, err := m.standing(ctx, issue, false)
	if err != nil {
		return err
	}
	if len(there) > 0 {
		if err := m.missed(ctx, issue); err != nil {
			return err
		}
	}
	var intended []schemas.MirrorComment
	for _, c := range missing {
		if _, ok := there[c.Key]; !ok {
			intended = append(intended, schemas.MirrorComment{Key: c.Key, Digest: mirror.Digest(c.Body), Intended: stamp(m.Now())})
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

// missed takes the labels of an issue for ours on which comments of ours stand and nothing is on record: what was is lost,
// and labels have no marker. Else nobody would take them off.
func (m *Mirror) missed(ctx context.Context, issue int) error {
	f, err := m.Records.Issue(ctx, issue)
	if err != nil || len(f.Comments) > 0 {
		return err
	}
	now, err := m.Remote.Issue(ctx, issue)
	if err != nil {
		return err
	}
	var ours []string
	for _, l := range mirror.Labels() {
		if l.Name != mirror.MadeLabel && slices.Contains(now.Labels, l.Name) {
			ours = append(ours, l.Name)
		}
	}
	if len(ours) == 0 {
		return nil
	}
	return m.Records.ChangeIssue(ctx, issue, func(f *schemas.MirrorFile) { f.Labels = append(f.Labels, ours...) })
}

// createOne makes a comment that is about to be made on record, and does not stand there.
func (m *Mirror) createOne(ctx context.Context, issue int, c mirror.Comment) error {
	sealed := m.Keys.Seal(c.Key, c.Body)
	now, err := m.Remote.CreateComment(ctx, issue, sealed)
	var uncertain *github.Uncertain
	if errors.As(err, &uncertain) {
		there, look := m.standing(ctx, issue, true)
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
	return m.record(ctx, issue, made(c, now.ID, sealed, now.Body))
}

// standing are the comments of ours on an issue, by key. An issue is looked at once, and again if what was seen is too old.
func (m *Mirror) standing(ctx context.Context, issue int, again bool) (map[string]github.Comment, error) {
	if there := m.there[issue]; there != nil && !again {
		return there, nil
	}
	if issue == 0 { // a dry run would have made it
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
		if key := m.sign(c.Body); key != "" && sameUser(c.Author, me) {
			there[key] = c
		}
	}
	if m.there == nil {
		m.there = map[int]map[string]github.Comment{}
	}
	m.there[issue] = there
	return there, nil
}

// sign is the key in the marker of a text of ours, "" for another text. Where the key that signs was made only now, nothing
// that stands there can be signed with it: then the marker alone counts, so that a tree that keeps no records makes nothing
// twice.
func (m *Mirror) sign(text string) string {
	key, ok := m.Keys.Open(text)
	if !ok && m.Records.NewKey() {
		return mirror.Marked(text)
	}
	return key
}
