package mirroring

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/specs"
	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/derive"
	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/controllers/mirror"
	"reconcile.dev/reconcile/controllers/slash"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/document"
	"reconcile.dev/reconcile/state"
)

// CommentClient is the part of GitHub's API for reading and answering comments; a *github.Client implements it.
type CommentClient interface {
	Comments(ctx context.Context, issue int, since time.Time) ([]github.Comment, error)
	RecentComments(ctx context.Context, since time.Time) ([]github.Comment, error)
	React(ctx context.Context, comment int64, content string) error
	InTeam(ctx context.Context, org, team, login string) (bool, error)
	Permission(ctx context.Context, login string) (string, error)
}

// Inbox derives specs from the comments on the issues of a Mirror, and replies with the results. It is not safe for
// concurrent use.
//
// A comment takes effect once. The names of its specs are derived from its id; they are written before the comment is
// recorded as handled, and the author gets a reply after that. Each step can be repeated.
type Inbox struct {
	Mirror   *Mirror
	Client   CommentClient
	Commands schemas.GitHubCommands // who may give commands
	// Tree loads the present tree. It is called only if there are new comments.
	Tree func(context.Context) (*state.Tree, error)
	// Write writes a spec as a new file, durably. One with the same content may exist.
	Write func(derive.Spec) error
	// Watch remembers between calls which issues have nothing new; nil reads all issues.
	Watch *Watch
	// Show and Known are described at [slash.Input].
	Show  func(t *state.Tree, v slash.View) string
	Known memory.Source

	teams  map[string]bool     // by team and login
	may    map[string]string   // permissions by login, as returned by GitHub
	listed map[int64]time.Time // time of the last change of the listed comments
	result ReadResult
}

// Watch is the state of a process that reads comments repeatedly. It reduces reading issues without new comments to one
// request for all of them. The zero value is empty.
type Watch struct {
	since      time.Time           // everything before was read, by GitHub's clock
	seen       map[int64]time.Time // later changes that were read, with their time, by id
	readIssues map[int]bool        // issues
}

// ReadResult is the result of reading or answering comments.
type ReadResult struct {
	Comments int // comments that specs were derived from, or that were refused
	Specs    int // written files
	Receipts int // reactions and replies
	// Later is the error that leaves work for the next call; nil: no work is left.
	Later error
	// Notes are notes for the user, one per line.
	Notes []string
}

// unread is an issue with its new comments.
type unread struct {
	issue slash.Issue
	since time.Time        // time of the last change of a person's comment, by GitHub's clock
	seen  []github.Comment // listed comments of persons
}

// Read reads the inbox: it collects new comments, applies the verdicts on them, which derives specs, and gives first
// receipts: the eyes reaction if a run has to decide, the final receipt otherwise. The error comes from the disk, the
// token, or ctx; the result includes the work before it.
func (in *Inbox) Read(ctx context.Context) (ReadResult, error) {
	in.result = ReadResult{}
	all, err := in.collect(ctx)
	if err != nil {
		return in.result, err
	}
	verdicts, err := in.decide(ctx, all)
	if err != nil {
		return in.result, err
	}
	for _, u := range all {
		if err := in.applyVerdicts(ctx, u, verdicts); err != nil {
			return in.result, err
		}
	}
	return in.answer(ctx, false)
}

// decide returns the verdicts on the new comments.
func (in *Inbox) decide(ctx context.Context, all []unread) ([]slash.Decision, error) {
	if !slices.ContainsFunc(all, func(u unread) bool { return len(u.issue.Comments) > 0 }) {
		return nil, nil
	}
	t, err := in.Tree(ctx)
	if err != nil {
		return nil, err
	}
	made := func(ref schemas.Ref) int {
		n, _ := in.Mirror.Records.Made(ctx, ref) // an unreadable record counts as empty
		return n
	}
	objects := mirror.Objects(t, controllers.MirrorOptions(t, mirror.Options{Made: made}))
	input := slash.Input{Tree: t, Now: in.Mirror.Now(), Show: in.Show, Known: in.Known}
	for _, u := range all {
		u.issue.Objects = objects[u.issue.File.Issue]
		input.Issues = append(input.Issues, u.issue)
	}
	return slash.Decide(input), nil
}

// collect lists the new comments on the issues that have a comment of ours, and those that start a workflow on others. Other comments
// before our first one were not written to this program.
func (in *Inbox) collect(ctx context.Context) ([]unread, error) {
	numbers, err := in.Mirror.Records.Issues()
	if err != nil {
		return nil, err
	}
	begun := in.Mirror.Now()
	if numbers, err = in.changedIssues(ctx, numbers); err != nil {
		if !github.Later(err) {
			return nil, err
		}
		in.result.Later = err
		return nil, nil
	}
	var out []unread
	for _, n := range numbers {
		f, err := in.Mirror.Records.Issue(ctx, n)
		if err != nil {
			return nil, err
		}
		first := firstOf(f)
		if first == 0 {
			continue
		}
		u, err := in.readIssue(ctx, f, first)
		switch {
		case err == nil:
			out = append(out, u)
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case github.Later(err):
			in.result.Later = err
			return out, nil
		case isLocal(err):
			in.result.note("issue #%d is not read: %v", n, err)
		default:
			return nil, err
		}
	}
	in.noteRead(numbers, in.Mirror.Now().Sub(begun))
	starts, err := in.collectStarts(ctx)
	return append(out, starts...), err
}

// changedIssues are the issues that must be read: those that were not read before, and those with new comments.
func (in *Inbox) changedIssues(ctx context.Context, numbers []int) ([]int, error) {
	if in.Watch == nil || in.Watch.since.IsZero() {
		return numbers, nil
	}
	recent, err := in.Client.RecentComments(ctx, in.Watch.since.Add(-overlap))
	if err != nil {
		return nil, err
	}
	news := map[int]bool{}
	for _, c := range recent {
		if !in.Watch.seen[c.ID].Equal(c.Updated) {
			news[c.Issue] = true
		}
		in.list(&c)
	}
	return slices.DeleteFunc(numbers, func(n int) bool { return in.Watch.readIssues[n] && !news[n] }), nil
}

func (in *Inbox) list(c *github.Comment) {
	if in.listed == nil {
		in.listed = map[int64]time.Time{}
	}
	in.listed[c.ID] = c.Updated
}

// noteRead updates Watch after reading, which took some time: comments that were written meanwhile on an issue that was
// read first were missed.
func (in *Inbox) noteRead(numbers []int, took time.Duration) {
	w := in.Watch
	if w == nil || len(in.listed) == 0 {
		return
	}
	newest := time.Time{}
	for _, at := range in.listed {
		newest = latestComment(newest, at)
	}
	w.since = latestComment(w.since, newest.Add(-took))
	w.seen = maps.Clone(in.listed)
	maps.DeleteFunc(w.seen, func(_ int64, at time.Time) bool { return at.Before(w.since.Add(-overlap)) })
	if w.readIssues == nil {
		w.readIssues = map[int]bool{}
	}
	for _, n := range numbers {
		w.readIssues[n] = true
	}
}

func (h *ReadResult) note(format string, args ...any) {
	h.Notes = append(h.Notes, fmt.Sprintf(format, args...))
}

// firstOf returns the id of our first comment on an issue, 0 if none is known.
func firstOf(f *schemas.MirrorFile) int64 {
	first := int64(0)
	for _, c := range f.Comments {
		if c.ID > 0 && (first == 0 || c.ID < first) {
			first = c.ID
		}
	}
	return first
}

// overlap is how far before the newest comment the next call starts: comments with close times may become visible out
// of order.
const overlap = 10 * time.Second

// editTolerance is how far apart the two times of an unedited comment may be: a server need not set them at once.
const editTolerance = time.Second

// readIssue lists the comments of an issue, and selects the new ones.
func (in *Inbox) readIssue(ctx context.Context, f *schemas.MirrorFile, first int64) (unread, error) {
	u := unread{issue: slash.Issue{File: f}, since: f.Read.Since.Time}
	from := u.since
	if !from.IsZero() {
		from = from.Add(-overlap)
	}
	all, err := in.Client.Comments(ctx, f.Issue, from)
	if err != nil {
		return u, err
	}
	answered, err := in.answered(ctx, f, all)
	if err != nil {
		return u, err
	}
	slices.SortFunc(all, func(a, b github.Comment) int { return int(max(-1, min(1, a.ID-b.ID))) })
	for _, c := range all {
		in.list(&c)
		if mine, err := in.isOurs(ctx, f, &c); err != nil {
			return u, err
		} else if mine || c.ID < first || c.Author.Bot {
			continue
		}
		if answered[c.ID] {
			u.seen, u.since = append(u.seen, c), latestComment(u.since, c.Updated)
			continue
		}
		if !u.isNew(f, &c) {
			if slices.Contains(f.Read.Seen, c.ID) {
				u.seen = append(u.seen, c)
			}
			continue
		}
		who, may, err := in.actor(ctx, f, &c)
		if err != nil {
			return u, err
		}
		if may {
			u.seen = append(u.seen, c)
			u.since = latestComment(u.since, c.Updated)
		}
		u.issue.Comments = append(u.issue.Comments, slash.Comment{ID: c.ID, Author: who, Body: c.Body, Created: c.Created,
			Edited: c.Updated.Sub(c.Created) > editTolerance, Marked: mirror.Marked(c.Body) != ""})
	}
	return u, in.readText(ctx, &u.issue)
}

// readText reads the text of an issue and what people wrote about it, if a new comment starts a workflow.
func (in *Inbox) readText(ctx context.Context, issue *slash.Issue) error {
	if !slices.ContainsFunc(issue.Comments, func(c slash.Comment) bool { return slash.Starts(c.Body) }) {
		return nil
	}
	read, err := ReadIssue(ctx, in.Mirror.Remote, issue.File.Issue)
	issue.Text, issue.Said = read.Text, read.Comments
	return err
}

func latestComment(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// isNew reports whether a comment was not read before, or was skipped and has changed since.
func (u *unread) isNew(f *schemas.MirrorFile, c *github.Comment) bool {
	read := f.Read.Since.Time
	switch {
	case slices.ContainsFunc(f.Handled, func(h schemas.MirrorHandled) bool { return h.Comment == c.ID }):
		return false
	case c.Updated.After(read):
		return true
	}
	return !c.Updated.Before(read.Add(-overlap)) && !slices.Contains(f.Read.Seen, c.ID)
}

// isOurs reports whether this program wrote a comment: it is on record, its marker matches its text, or it has a
// marker, whose key may be lost, and the token's account as author. Any other comment with a marker is a copy or a
// forgery.
func (in *Inbox) isOurs(ctx context.Context, f *schemas.MirrorFile, c *github.Comment) (bool, error) {
	if slices.ContainsFunc(f.Comments, func(o schemas.MirrorComment) bool { return o.ID == c.ID }) {
		return true, nil
	}
	if mirror.Marked(c.Body) == "" {
		return false, nil
	}
	if _, ok := in.Mirror.Keys.Open(c.Body); ok {
		return true, nil
	}
	me, err := in.Mirror.Remote.Viewer(ctx)
	return err == nil && sameUser(c.Author, me), err
}

// isRelevant reports whether a comment may be addressed to this program: it has a command, or its issue has a question
// of an agent. The permissions of other authors are not requested.
func isRelevant(f *schemas.MirrorFile, c *github.Comment) bool {
	return slices.ContainsFunc(f.Comments, func(o schemas.MirrorComment) bool { return strings.HasPrefix(o.Key, "round/") }) ||
		len(slash.Parse(c.Body).Commands) > 0
}

// applyVerdicts writes the specs of an issue's verdicts, comment by comment, and records the read position.
func (in *Inbox) applyVerdicts(ctx context.Context, u unread, verdicts []slash.Decision) error {
	f := u.issue.File
	var before []int64 // skipped
	for _, c := range u.issue.Comments {
		i := slices.IndexFunc(verdicts, func(v slash.Decision) bool { return v.Issue == f.Issue && v.Handled.Comment == c.ID })
		if i < 0 {
			before = append(before, c.ID)
			continue
		}
		v := verdicts[i]
		for _, s := range v.Specs {
			if err := in.Write(s); err != nil {
				return err
			}
			in.result.Specs++
		}
		in.result.Comments++
		err := in.Mirror.Records.changeIssue(ctx, f.Issue, func(f *schemas.MirrorFile) {
			f.Read.Seen = mirroredLabels(f.Read.Seen, before)
			f.Handled = append(withoutComment(f.Handled, v.Handled.Comment), v.Handled)
		})
		if err != nil {
			return err
		}
	}
	return in.finish(ctx, u)
}

// finish records the read position of an issue, if it changed. Comments of authors without permission do not change it.
func (in *Inbox) finish(ctx context.Context, u unread) error {
	f, err := in.Mirror.Records.Issue(ctx, u.issue.File.Issue)
	if err != nil {
		return err
	}
	read := schemas.MirrorRead{Since: schemas.NewTime(u.since)}
	for _, c := range u.seen {
		handled := slices.ContainsFunc(f.Handled, func(h schemas.MirrorHandled) bool { return h.Comment == c.ID })
		if !handled && !c.Updated.Before(u.since.Add(-overlap)) {
			read.Seen = append(read.Seen, c.ID)
		}
	}
	slices.Sort(read.Seen)
	if read.Since.Equal(f.Read.Since.Time) && slices.Equal(read.Seen, f.Read.Seen) {
		return nil
	}
	return in.Mirror.Records.changeIssue(ctx, f.Issue, func(f *schemas.MirrorFile) {
		f.Read = read
		for i := 0; len(f.Handled) > maxHandled && i < len(f.Handled); {
			if isAnswered(&f.Handled[i]) {
				f.Handled = slices.Delete(f.Handled, i, i+1) // sorted by id: the oldest first
				continue
			}
			i++
		}
	})
}

// writeDerived writes a spec that was derived from a comment, like one of the command line.
func writeDerived(store *state.Store, s derive.Spec) error {
	if err := specs.CheckSecrets(s.Ref.Name, s.Spec); err != nil {
		return err
	}
	src, err := document.Spec(s.Ref, s.Spec)
	if err != nil {
		return err
	}
	if err := specs.Create(store.Root(), s.Path, src); err != nil {
		return err
	}
	return store.Announce()
}
