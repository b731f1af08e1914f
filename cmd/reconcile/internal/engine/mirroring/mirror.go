// Package mirroring mirrors a tree to issues on GitHub.
//
// Package controllers/mirror decides the content of the issues; [Mirror.Out] compares it with the records below
// state/github, and creates, edits, adds and removes the differences. An unchanged tree costs no request.
//
// Everything is created once. The intent is on disk before the call, and the id afterwards; a run that finds an intent
// without an id reads the issue first. Our own comments are identified by their author and by a marker that only we can
// make, so that even lost records lead to no second comment. Edits, and adding and removing labels, are idempotent.
//
// The work of others is not touched: a comment that was edited, a label that existed before, assignees, and whether an
// issue is open.
package mirroring

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/mirror"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// IssueClient is the part of GitHub's API for mirroring; a *github.Client implements it. A dry client returns objects
// with the number or id 0.
type IssueClient interface {
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

// Mirror mirrors one tree to one repository on GitHub. It is not safe for concurrent use.
type Mirror struct {
	Remote  IssueClient
	Records *GitHubRecords
	Keys    mirror.Keys
	Now     func() time.Time
	// Dry says that Remote creates nothing: the objects that it returns have no ids.
	Dry bool

	existingComments map[int]map[string]github.Comment // by issue and key: our comments that exist
	made             map[string]int                    // by key: our issues; nil until they were listed
	ensured          map[string]bool                   // labels that exist in the repository
	report           Report
}

// Report is the result of mirroring.
type Report struct {
	Issues, Comments, Edits, Labels int // created, edited, and added or removed
	// Left is the number of issues that are not up to date: the next run continues with them.
	Left int
	// Later is the error that left them, if a retry helps: a limit, or a failing server.
	Later error
	// Notes are notes for the user, one per line: skipped issues, with the reasons.
	Notes []string
}

// calls sums up the calls of the report that changed something: issues, comments, edits and labels.
func (r Report) calls() int { return r.Issues + r.Comments + r.Edits + r.Labels }

// moveHint says how the content of an issue that no longer exists gets to another one; "" for other errors.
func (m *Mirror) moveHint(i mirror.Issue, err error) string {
	switch {
	case !errors.Is(err, github.ErrGone) && !errors.Is(err, github.ErrTransferred):
		return ""
	case i.Key == "":
		return "; name another one in the spec, or none"
	}
	return fmt.Sprintf("; name one in the spec of %s, or delete %s to have one made", i.Object, m.Records.store.MirrorObjectPath(i.Object))
}

// maxRefusals is the number of successive issues without permission after which the mirror gives up.
const maxRefusals = 3

// Out mirrors the issues to GitHub in order, and returns a Report of the calls and of the issues left for later. An error
// of one issue is noted, and the others are still updated. The returned error affects all issues: it comes from the
// disk, the token, or ctx. The report includes the work before it.
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
		case errors.As(err, new(*github.Uncertain)): // the next run looks up the result
			m.report.Later, m.report.Left = err, m.report.Left+1
			continue
		case github.Later(err):
			m.report.Later, m.report.Left = err, m.report.Left+len(issues)-n
			return m.report, nil
		case errors.Is(err, github.ErrForbidden): // for this issue, or for the repository
			refusals++
		default:
			refusals = 0
		}
		if !isLocal(err) || refusals == maxRefusals {
			m.report.Left += len(issues) - n
			return m.report, err
		}
		m.report.Left++
		m.note("%s is not mirrored: %v%s", describeRead(i), err, m.moveHint(i, err))
	}
	if err := m.clearOutdated(ctx, issues); err != nil || m.report.Later != nil {
		return m.report, err
	}
	return m.report, m.Records.signed(ctx)
}

// isLocal reports whether an error concerns only one issue or comment.
func isLocal(err error) bool {
	return errors.Is(err, github.ErrForbidden) || errors.Is(err, github.ErrInvalid) || errors.Is(err, github.ErrGone) ||
		errors.Is(err, github.ErrTransferred) || errors.Is(err, github.ErrLocked)
}

func (m *Mirror) note(format string, args ...any) {
	m.report.Notes = append(m.report.Notes, fmt.Sprintf(format, args...))
}

// issue updates one issue.
func (m *Mirror) issue(ctx context.Context, i mirror.Issue) error {
	if i.Number == 0 {
		number, err := m.createIssue(ctx, i)
		if err != nil {
			return err
		}
		i.Number = number
	}
	if err := m.say(ctx, i.Number, i.Comments...); err != nil {
		return err
	}
	if err := m.updateHead(ctx, i); err != nil {
		return err
	}
	return m.labels(ctx, i.Number, i.Labels)
}

// clearOutdated removes the labels from issues that no longer show anything. Comments there remain as history.
func (m *Mirror) clearOutdated(ctx context.Context, issues []mirror.Issue) error {
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
		case isLocal(err):
			m.note("the labels of issue #%d stay: %v", n, err)
		default:
			return err
		}
	}
	return nil
}

// createIssue creates the issue of an object, unless it exists, and returns its number; 0 in a dry run.
func (m *Mirror) createIssue(ctx context.Context, i mirror.Issue) (int, error) {
	number, err := m.findMade(ctx, i.Key, false)
	if err != nil {
		return 0, err
	}
	if number > 0 {
		return number, m.recordMade(ctx, i, number, false)
	}
	if err := m.ensureLabel(ctx, mirror.MadeLabel); err != nil {
		return 0, err
	}
	now := recordTime(m.Now())
	err = m.Records.ofObject(i.Object).change(ctx, func(o *schemas.MirrorObject) {
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

// recordMade records the number of a created issue, and its title and body if head is set, in which case both are as
// written unless they were edited since.
func (m *Mirror) recordMade(ctx context.Context, i mirror.Issue, number int, head bool) error {
	err := m.Records.ofObject(i.Object).change(ctx, func(o *schemas.MirrorObject) {
		o.Issue, o.Intended = number, schemas.Time{}
		if head {
			o.Titles, o.Body = []string{mirror.Digest(i.Title)}, mirror.Digest(i.Body)
		}
	})
	if err != nil {
		return err
	}
	return m.Records.changeIssue(ctx, number, func(f *schemas.MirrorFile) { f.Made = i.Object.String() })
}

// updateHead updates the title and body of an issue that was created for an object. An edited title or body is kept.
func (m *Mirror) updateHead(ctx context.Context, i mirror.Issue) error {
	if i.Number == 0 || i.Key == "" {
		return nil
	}
	was, err := m.Records.ofObject(i.Object).read(ctx)
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
		if err := m.Records.ofObject(i.Object).change(ctx, func(o *schemas.MirrorObject) { o.Titles = before }); err != nil {
			return err
		}
	}
	if sealed := m.Keys.Seal(i.Key, i.Body); m.keyIn(now.Body) == i.Key && mirror.Digest(now.Body) != mirror.Digest(sealed) {
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

// findMade returns the number of our issue with a key, or 0. All issues are listed once, and again to refresh a stale
// list.
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
			if k := m.keyIn(i.Body); k != "" && sameUser(i.Author, me) && !i.PullRequest {
				m.made[k] = i.Number
			}
		}
	}
	return m.made[key], nil
}

// ensureLabel creates a label of the repository, unless it exists.
func (m *Mirror) ensureLabel(ctx context.Context, name string) error {
	if m.ensured[name] {
		return nil
	}
	if l, ok := mirror.LabelNamed(name); ok {
		if err := m.Remote.EnsureLabel(ctx, github.Label(l)); err != nil {
			return err
		}
	}
	if m.ensured == nil {
		m.ensured = map[string]bool{}
	}
	m.ensured[name] = true
	return nil
}

// labels adds missing labels to an issue, and removes unwanted ones of ours. Labels that other users added are kept,
// and labels of ours that they removed are not added again.
func (m *Mirror) labels(ctx context.Context, issue int, want []string) error {
	if issue == 0 { // a dry run would have created it
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

// removeLabels removes unwanted labels of ours, and drops the records of unwanted labels of others.
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
		err := m.Records.changeIssue(ctx, issue, func(f *schemas.MirrorFile) {
			f.Labels, f.Adding = withoutLabels(f.Labels, name), withoutLabels(f.Adding, name)
		})
		if err != nil {
			return err
		}
	}
	if !slices.ContainsFunc(rec.Others, unwanted) {
		return nil
	}
	return m.Records.changeIssue(ctx, issue, func(f *schemas.MirrorFile) { f.Others = slices.DeleteFunc(f.Others, unwanted) })
}

// intendLabels records which labels will be added: those that the issue lacks, and those that an earlier run
// intended to add. The others were added by other users, which is recorded so that the issue need not be read again.
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
	return add, m.Records.changeIssue(ctx, issue, func(f *schemas.MirrorFile) {
		f.Adding, f.Others = append(f.Adding, add...), append(f.Others, others...)
	})
}

func (m *Mirror) addLabels(ctx context.Context, issue int, add []string) error {
	if len(add) == 0 {
		return nil
	}
	for _, name := range add {
		if err := m.ensureLabel(ctx, name); err != nil {
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
	return m.Records.changeIssue(ctx, issue, func(f *schemas.MirrorFile) {
		for _, name := range add {
			f.Labels, f.Adding = append(withoutLabels(f.Labels, name), name), withoutLabels(f.Adding, name)
		}
	})
}

func withoutLabels(list []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(s string) bool { return s == name })
}

// recoverLabels records the labels of an issue as ours if the issue has comments of ours and no record: the record was
// lost, and labels have no marker. Otherwise they would never be removed.
func (m *Mirror) recoverLabels(ctx context.Context, issue int) error {
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
	return m.Records.changeIssue(ctx, issue, func(f *schemas.MirrorFile) { f.Labels = append(f.Labels, ours...) })
}

func mirroredLabels(a, b []int64) []int64 {
	out := append(slices.Clip(a), b...)
	slices.Sort(out)
	return slices.Compact(out)
}

// ProjectTree projects a tree to the mirror issues that GitHub should have, with links to files and the issues on
// record.
func ProjectTree(ctx context.Context, t *state.Tree, records *GitHubRecords, files string) ([]mirror.Issue, error) {
	var failed error
	issues := mirror.Project(t, controllers.MirrorOptions(t, mirror.Options{Files: files, Mention: t.Settings().GitHub.Mention,
		Made: func(ref schemas.Ref) int {
			n, err := records.Made(ctx, ref)
			failed = errors.Join(failed, err)
			return n
		}}))
	return issues, failed
}
