package mirroring

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/controllers/mirror"
	"reconcile.dev/reconcile/controllers/slash"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// Listener is what reading needs of GitHub; a *github.Client is one.
type Listener interface {
	Comments(ctx context.Context, issue int, since time.Time) ([]github.Comment, error)
	RecentComments(ctx context.Context, since time.Time) ([]github.Comment, error)
	React(ctx context.Context, comment int64, content string) error
	InTeam(ctx context.Context, org, team, login string) (bool, error)
	Permission(ctx context.Context, login string) (string, error)
}

// Inbox makes specs of what people write on the issues that a Mirror keeps, and tells them what became of it. It is for
// one goroutine.
//
// A comment acts once: the names of its specs follow from its id, they are written before it is on record that it was
// handled, and that before its author is told; each step can be done again.
type Inbox struct {
	*Mirror
	Listener Listener
	Commands schemas.GitHubCommands // who may give commands
	// Tree loads the tree as it is now. It is asked only if there is something to decide.
	Tree func(context.Context) (*state.Tree, error)
	// Write writes a spec as a new file, durably. One with the same content may be there.
	Write func(controllers.Spec) error
	// Watch remembers, from one look to the next, which issues need none; nil looks at all.
	Watch *Watch
	// Show and Known are as in [slash.Input].
	Show  func(t *state.Tree, v slash.View) string
	Known memory.Source

	teams  map[string]bool     // by team and login
	may    map[string]string   // by login: what GitHub said of the permission
	listed map[int64]time.Time // when comments that were listed were changed last
	heard  Heard
}

// Watch is what a process that looks again and again knows: with it a look at issues of which nothing is new is one
// request for all of them. The zero value knows nothing.
type Watch struct {
	since  time.Time           // everything before was seen, by GitHub's clock
	seen   map[int64]time.Time // and what was changed after that, with the time, by its id
	looked map[int]bool        // issues
}

// Heard tells what came of reading.
type Heard struct {
	Comments int // that something was made of, or that were refused
	Specs    int // files written
	Receipts int // reactions and replies given
	// Later says why something was left for the next time, where trying again helps; nil: nothing was.
	Later error
	// Notes are what people should know, a line each.
	Notes []string
}

// unread is an issue with what is new on it.
type unread struct {
	issue slash.Issue
	since time.Time        // when the newest comment of a person was changed last, by GitHub's clock
	seen  []github.Comment // what persons wrote, as far as it was listed
}

// Read makes specs of what is new, and gives first receipts: eyes for what a run has to decide, the last one for the rest.
// The error is one of the disk, of the token, or of ctx; what was done before it is told beside it.
func (in *Inbox) Read(ctx context.Context) (Heard, error) {
	in.heard = Heard{}
	all, err := in.collect(ctx)
	if err != nil {
		return in.heard, err
	}
	verdicts, err := in.decide(ctx, all)
	if err != nil {
		return in.heard, err
	}
	for _, u := range all {
		if err := in.take(ctx, u, verdicts); err != nil {
			return in.heard, err
		}
	}
	return in.answer(ctx, false)
}

// decide says what is made of what is new.
func (in *Inbox) decide(ctx context.Context, all []unread) ([]slash.Decision, error) {
	if !slices.ContainsFunc(all, func(u unread) bool { return len(u.issue.Comments) > 0 }) {
		return nil, nil
	}
	t, err := in.Tree(ctx)
	if err != nil {
		return nil, err
	}
	made := func(ref schemas.Ref) int {
		n, _ := in.Records.Made(ctx, ref) // a record that cannot be read says nothing
		return n
	}
	objects := mirror.Objects(t, controllers.MirrorOptions(t, mirror.Options{Made: made}))
	input := slash.Input{Tree: t, Now: in.Now(), Show: in.Show, Known: in.Known}
	for _, u := range all {
		u.issue.Objects = objects[u.issue.File.Issue]
		input.Issues = append(input.Issues, u.issue)
	}
	return slash.Decide(input), nil
}

// collect lists what is new on the issues that have a comment of ours: what is older than the first of those was not
// written to this program.
func (in *Inbox) collect(ctx context.Context) ([]unread, error) {
	numbers, err := in.Records.Issues()
	if err != nil {
		return nil, err
	}
	begun := in.Now()
	if numbers, err = in.stirred(ctx, numbers); err != nil {
		if !github.Later(err) {
			return nil, err
		}
		in.heard.Later = err
		return nil, nil
	}
	var out []unread
	for _, n := range numbers {
		f, err := in.Records.Issue(ctx, n)
		if err != nil {
			return nil, err
		}
		first := firstOf(f)
		if first == 0 {
			continue
		}
		u, err := in.look(ctx, f, first)
		switch {
		case err == nil:
			out = append(out, u)
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case github.Later(err):
			in.heard.Later = err
			return out, nil
		case ofOne(err):
			in.heard.note("issue #%d is not read: %v", n, err)
		default:
			return nil, err
		}
	}
	in.watched(numbers, in.Now().Sub(begun))
	return out, nil
}

// stirred are the issues that have to be looked at: those that were not before, and those that something was written on.
func (in *Inbox) stirred(ctx context.Context, numbers []int) ([]int, error) {
	if in.Watch == nil || in.Watch.since.IsZero() {
		return numbers, nil
	}
	recent, err := in.Listener.RecentComments(ctx, in.Watch.since.Add(-overlap))
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
	return slices.DeleteFunc(numbers, func(n int) bool { return in.Watch.looked[n] && !news[n] }), nil
}

func (in *Inbox) list(c *github.Comment) {
	if in.listed == nil {
		in.listed = map[int64]time.Time{}
	}
	in.listed[c.ID] = c.Updated
}

// watched notes what was looked at, in the time that it took: what was written meanwhile on an issue that came first was
// not seen.
func (in *Inbox) watched(numbers []int, took time.Duration) {
	w := in.Watch
	if w == nil || len(in.listed) == 0 {
		return
	}
	newest := time.Time{}
	for _, at := range in.listed {
		newest = latest(newest, at)
	}
	w.since = latest(w.since, newest.Add(-took))
	w.seen = maps.Clone(in.listed)
	maps.DeleteFunc(w.seen, func(_ int64, at time.Time) bool { return at.Before(w.since.Add(-overlap)) })
	if w.looked == nil {
		w.looked = map[int]bool{}
	}
	for _, n := range numbers {
		w.looked[n] = true
	}
}

func (h *Heard) note(format string, args ...any) {
	h.Notes = append(h.Notes, fmt.Sprintf(format, args...))
}

// firstOf is the id of the first comment of ours on an issue, 0 if none is known.
func firstOf(f *schemas.MirrorFile) int64 {
	first := int64(0)
	for _, c := range f.Comments {
		if c.ID > 0 && (first == 0 || c.ID < first) {
			first = c.ID
		}
	}
	return first
}

// overlap is how long before the newest comment that was read the next call begins: comments of one moment need not
// become visible in their order.
const overlap = 10 * time.Second

// moment is how far apart the two times of a comment may be that nobody edited: a server need not take them at once.
const moment = time.Second

// look lists the comments of an issue, and which of them are new.
func (in *Inbox) look(ctx context.Context, f *schemas.MirrorFile, first int64) (unread, error) {
	u := unread{issue: slash.Issue{File: f}, since: f.Read.Since.Time}
	from := u.since
	if !from.IsZero() {
		from = from.Add(-overlap)
	}
	all, err := in.Listener.Comments(ctx, f.Issue, from)
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
		if mine, err := in.mine(ctx, f, &c); err != nil {
			return u, err
		} else if mine || c.ID < first || c.Author.Bot {
			continue
		}
		if answered[c.ID] {
			u.seen, u.since = append(u.seen, c), latest(u.since, c.Updated)
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
			u.since = latest(u.since, c.Updated)
		}
		u.issue.Comments = append(u.issue.Comments, slash.Comment{ID: c.ID, Author: who, Body: c.Body, Created: c.Created,
			Edited: c.Updated.Sub(c.Created) > moment, Marked: mirror.Marked(c.Body) != ""})
	}
	return u, nil
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// isNew reports whether a comment was not read before, or was left aside and changed since.
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
