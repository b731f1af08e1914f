package mirroring

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
	"reconcile.dev/reconcile/controllers/mirror"
	"reconcile.dev/reconcile/schemas"
)

// Remote is what is needed of GitHub; a *github.Client is one. A dry one hands back what it would have made with the
// number or id 0.
type Remote interface {
	Viewer(ctx context.Context) (github.User, error)
	Issue(ctx context.Context, number int) (*github.Issue, error)
	FindIssues(ctx context.Context, label string, since time.Time) ([]github.Issue, error)
	CreateIssue(ctx context.Context, n github.NewIssue) (*github.Issue, error)
	EditIssue(ctx context.Context, number int, title, body string) error
	Comments(ctx context.Context, issue int, since time.Time) ([]github.Comment, error)
	GetComment(ctx context.Context, id int64) (*github.Comment, error)
	CreateComment(ctx context.Context, issue int, body string) (*github.Comment, error)
	EditComment(ctx context.Context, id int64, body string) (*github.Comment, error)
	EnsureLabel(ctx context.Context, l github.Label) error
	AddLabels(ctx context.Context, issue int, names []string) error
	RemoveLabel(ctx context.Context, issue int, name string) error
}

// Mirror keeps one repository on GitHub in step with one tree. It is for one goroutine.
type Mirror struct {
	Remote  Remote
	Records *Records
	Keys    mirror.Keys
	Now     func() time.Time
	// Dry says that Remote makes nothing: what it hands back has no ids.
	Dry bool

	there   map[int]map[string]github.Comment // by issue and key: comments of ours that stand there
	made    map[string]int                    // by key: issues of ours; nil until they were looked for
	ensured map[string]bool                   // labels that the repository has
	report  Report
}

// Report tells what became of a run of the mirror.
type Report struct {
	Issues, Comments, Edits, Labels int // made, edited, and added or removed
	// Left is how many issues are not as they should be: the next run goes on with them.
	Left int
	// Later says why they were left, where trying again helps: a limit, or a server that fails. nil: nothing was left so.
	Later error
	// Notes are what people should know, a line each: what was skipped, and why.
	Notes []string
}

// Calls is how many calls changed something.
func (r Report) Calls() int { return r.Issues + r.Comments + r.Edits + r.Labels }

// elsewhere says how what is shown on an issue that is not there any more gets to another one; "" for other errors.
func (m *Mirror) elsewhere(i mirror.Issue, err error) string {
	switch {
	case !errors.Is(err, github.ErrGone) && !errors.Is(err, github.ErrTransferred):
		return ""
	case i.Key == "":
		return "; name another one in the spec, or none"
	}
	return fmt.Sprintf("; name one in the spec of %s, or delete %s to have one made", i.Object, m.Records.store.MirrorObjectPath(i.Object))
}

// mostRefusals is after how many issues in a row that the token has no right to the mirror gives up.
const mostRefusals = 3

// Out brings issues to where they should be, in their order. What cannot be done on one issue is noted, and the others
// are seen to. The error is one that no other issue can get around: of the disk, of the token, or of ctx. What was done
// before it is in the report.
func (m *Mirror) Out(ctx context.Context, issues []mirror.Issue) (Report, error) {
	m.report = Report{}
	refusals := 0
	for n, i := range issues {
		err := m.issue(ctx, i)
		switch {
		case err == nil:
			refusals = 0
			continue
		case ctx.Err() != nil:
			return m.report, ctx.Err()
		case errors.As(err, new(*github.Uncertain)): // the next run looks again what became of it
			m.report.Later, m.report.Left = err, m.report.Left+1
			continue
		case github.Later(err):
			m.report.Later, m.report.Left = err, m.report.Left+len(issues)-n
			return m.report, nil
		case errors.Is(err, github.ErrForbidden): // of this one, or of the repository
			refusals++
		default:
			refusals = 0
		}
		if !ofOne(err) || refusals == mostRefusals {
			m.report.Left += len(issues) - n
			return m.report, err
		}
		m.report.Left++
		m.note("%s is not mirrored: %v%s", describe(i), err, m.elsewhere(i, err))
	}
	if err := m.outdated(ctx, issues); err != nil || m.report.Later != nil {
		return m.report, err
	}
	return m.report, m.Records.Signed(ctx)
}

// ofOne reports whether an error says something of one issue or comment only.
func ofOne(err error) bool {
	return errors.Is(err, github.ErrForbidden) || errors.Is(err, github.ErrInvalid) || errors.Is(err, github.ErrGone) ||
		errors.Is(err, github.ErrTransferred) || errors.Is(err, github.ErrLocked)
}

func describe(i mirror.Issue) string {
	if i.Number > 0 {
		return fmt.Sprintf("issue #%d", i.Number)
	}
	return "the issue of " + i.Object.String()
}

func (m *Mirror) note(format string, args ...any) {
	m.report.Notes = append(m.report.Notes, fmt.Sprintf(format, args...))
}

// issue brings one issue to where it should be.
func (m *Mirror) issue(ctx context.Context, i mirror.Issue) error {
	if i.Number == 0 {
		number, err := m.make(ctx, i)
		if err != nil {
			return err
		}
		i.Number = number
	}
	if err := m.Say(ctx, i.Number, i.Comments...); err != nil {
		return err
	}
	if err := m.head(ctx, i); err != nil {
		return err
	}
	return m.labels(ctx, i.Number, i.Labels)
}

// outdated takes the labels off issues on which nothing is shown any more. Comments there stay, as what was.
func (m *Mirror) outdated(ctx context.Context, issues []mirror.Issue) error {
	shown := map[int]bool{}
	for _, i := range issues {
		shown[i.Number] = true
	}
	all, err := m.Records.Issues()
	if err != nil {
		return err
	}
	for _, n := range all {
		if shown[n] {
			continue
		}
		switch err := m.labels(ctx, n, nil); {
		case err == nil:
		case github.Later(err):
			m.report.Later, m.report.Left = err, m.report.Left+1
			return nil
		case ofOne(err):
			m.note("the labels of issue #%d stay: %v", n, err)
		default:
			return err
		}
	}
	return nil
}

// make makes the issue of an object, unless it is there, and returns its number; 0 on a dry run.
func (m *Mirror) make(ctx context.Context, i mirror.Issue) (int, error) {
	number, err := m.findMade(ctx, i.Key, false)
	if err != nil {
		return 0, err
	}
	if number > 0 {
		return number, m.recordMade(ctx, i, number, false)
	}
	if err := m.ensure(ctx, mirror.MadeLabel); err != nil {
		return 0, err
	}
	now := stamp(m.Now())
	err = m.Records.ChangeObject(ctx, i.Object, func(o *schemas.MirrorObject) {
		o.Intended, o.Titles = now, []string{mirror.Digest(i.Title)}
	})
	if err != nil {
		return 0, err
	}
	made, err := m.Remote.CreateIssue(ctx, github.NewIssue{Title: i.Title, Body: m.Keys.Seal(i.Key, i.Body),
		Labels: []string{mirror.MadeLabel}})
	var uncertain *github.Uncertain
	switch {
	case errors.As(err, &uncertain):
		if number, look := m.findMade(ctx, i.Key, true); look == nil && number > 0 {
			return number, m.recordMade(ctx, i, number, false)
		}
		return 0, err
	case err != nil:
		return 0, err
	}
	m.report.Issues++
	if made.Number == 0 { // a dry run
		return 0, nil
	}
	m.made[i.Key] = made.Number
	return made.Number, m.recordMade(ctx, i, made.Number, true)
}

// recordMade notes the number of an issue that was made and, where it is known that they stand there unless somebody else
// edited them, its title and body.
func (m *Mirror) recordMade(ctx context.Context, i mirror.Issue, number int, head bool) error {
	err := m.Records.ChangeObject(ctx, i.Object, func(o *schemas.MirrorObject) {
		o.Issue, o.Intended = number, schemas.Time{}
		if head {
			o.Titles, o.Body = []string{mirror.Digest(i.Title)}, mirror.Digest(i.Body)
		}
	})
	if err != nil {
		return err
	}
	return m.Records.ChangeIssue(ctx, number, func(f *schemas.MirrorFile) { f.Made = i.Object.String() })
}

// head has an issue that was made for an object say what the object is called, and what it is about. A title or a body that
// somebody edited stays.
func (m *Mirror) head(ctx context.Context, i mirror.Issue) error {
	if i.Number == 0 || i.Key == "" {
		return nil
	}
	was, err := m.Records.Object(ctx, i.Object)
	if err != nil || slices.Equal(was.Titles, []string{mirror.Digest(i.Title)}) && was.Body == mirror.Digest(i.Body) {
		return err
	}
	now, err := m.Remote.Issue(ctx, i.Number)
	if err != nil {
		return err
	}
	title, body := "", ""
	if now.Title != i.Title && slices.Contains(was.Titles, mirror.Digest(now.Title)) {
		title = i.Title
		before := []string{mirror.Digest(now.Title), mirror.Digest(title)}
		if err := m.Records.ChangeObject(ctx, i.Object, func(o *schemas.MirrorObject) { o.Titles = before }); err != nil {
			return err
		}
	}
	if sealed := m.Keys.Seal(i.Key, i.Body); m.sign(now.Body) == i.Key && mirror.Digest(now.Body) != mirror.Digest(sealed) {
		body = sealed
	}
	if title != "" || body != "" {
		if err := m.Remote.EditIssue(ctx, i.Number, title, body); err != nil {
			return err
		}
		m.report.Edits++
	}
	return m.recordMade(ctx, i, i.Number, true)
}

// findMade looks for an issue of ours by its key; 0 if there is none. They are all asked for once, and again if what was
// seen is too old.
func (m *Mirror) findMade(ctx context.Context, key string, again bool) (int, error) {
	if m.made == nil || again {
		me, err := m.Remote.Viewer(ctx)
		if err != nil {
			return 0, err
		}
		found, err := m.Remote.FindIssues(ctx, mirror.MadeLabel, time.Time{})
		if err != nil {
			return 0, err
		}
		m.made = map[string]int{}
		for _, i := range slices.Backward(found) { // of two, the first counts
			if k := m.sign(i.Body); k != "" && sameUser(i.Author, me) && !i.PullRequest {
				m.made[k] = i.Number
			}
		}
	}
	return m.made[key], nil
}

// sameUser compares by id where it is known: names can be changed.
func sameUser(a, b github.User) bool {
	if a.ID != 0 && b.ID != 0 {
		return a.ID == b.ID
	}
	return a.Login != "" && a.Login == b.Login
}

// ensure makes a label of the repository, unless it is there.
func (m *Mirror) ensure(ctx context.Context, name string) error {
	if m.ensured[name] {
		return nil
	}
	for _, l := range mirror.Labels() {
		if l.Name == name {
			if err := m.Remote.EnsureLabel(ctx, github.Label(l)); err != nil {
				return err
			}
		}
	}
	if m.ensured == nil {
		m.ensured = map[string]bool{}
	}
	m.ensured[name] = true
	return nil
}

// labels adds what an issue lacks, and removes what is ours and should not be there. A label that somebody else put there
// is left alone, and so is that somebody took ours off.
func (m *Mirror) labels(ctx context.Context, issue int, want []string) error {
	if issue == 0 { // a dry run would have made it
		return m.addLabels(ctx, 0, want)
	}
	rec, err := m.Records.Issue(ctx, issue)
	if err != nil {
		return err
	}
	if err := m.removeLabels(ctx, issue, rec, want); err != nil {
		return err
	}
	var add []string
	for _, name := range want {
		if !slices.Contains(rec.Labels, name) && !slices.Contains(rec.Others, name) {
			add = append(add, name)
		}
	}
	if len(add) == 0 {
		return nil
	}
	if add, err = m.intendLabels(ctx, issue, rec.Adding, add); err != nil || len(add) == 0 {
		return err
	}
	return m.addLabels(ctx, issue, add)
}

// removeLabels takes labels of ours off that are not wanted, and forgets those of others.
func (m *Mirror) removeLabels(ctx context.Context, issue int, rec *schemas.MirrorFile, want []string) error {
	unwanted := func(name string) bool { return !slices.Contains(want, name) }
	for _, name := range slices.Concat(rec.Labels, rec.Adding) {
		if !unwanted(name) {
			continue
		}
		if err := m.Remote.RemoveLabel(ctx, issue, name); err != nil && !errors.Is(err, github.ErrGone) {
			return err
		}
		m.report.Labels++
		err := m.Records.ChangeIssue(ctx, issue, func(f *schemas.MirrorFile) {
			f.Labels, f.Adding = without(f.Labels, name), without(f.Adding, name)
		})
		if err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(rec.Others, unwanted) {
		return nil
	}
	return m.Records.ChangeIssue(ctx, issue, func(f *schemas.MirrorFile) { f.Others = slices.DeleteFunc(f.Others, unwanted) })
}

// intendLabels notes which labels are about to be added: those that the issue does not have, and those that an earlier
// run was about to add. The others somebody else put there; that is on record, so that nobody has to look again.
func (m *Mirror) intendLabels(ctx context.Context, issue int, begun, add []string) ([]string, error) {
	now, err := m.Remote.Issue(ctx, issue)
	if err != nil {
		return nil, err
	}
	var others []string
	add = slices.DeleteFunc(add, func(name string) bool {
		there := slices.Contains(now.Labels, name) && !slices.Contains(begun, name)
		if there {
			others = append(others, name)
		}
		return there
	})
	return add, m.Records.ChangeIssue(ctx, issue, func(f *schemas.MirrorFile) {
		f.Adding, f.Others = append(f.Adding, add...), append(f.Others, others...)
	})
}

func (m *Mirror) addLabels(ctx context.Context, issue int, add []string) error {
	if len(add) == 0 {
		return nil
	}
	for _, name := range add {
		if err := m.ensure(ctx, name); err != nil {
			return err
		}
	}
	if err := m.Remote.AddLabels(ctx, issue, add); err != nil {
		return err
	}
	m.report.Labels += len(add)
	if issue == 0 {
		return nil
	}
	return m.Records.ChangeIssue(ctx, issue, func(f *schemas.MirrorFile) {
		for _, name := range add {
			f.Labels, f.Adding = append(without(f.Labels, name), name), without(f.Adding, name)
		}
	})
}

func without(list []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == name })
}
