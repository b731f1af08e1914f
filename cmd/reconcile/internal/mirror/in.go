package mirror

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
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
func (in *Inbox) decide(ctx context.Context, all []unread) ([]slash.Verdict, error) {
	if !slices.ContainsFunc(all, func(u unread) bool { return len(u.issue.Comments) > 0 }) {
		return nil, nil
	}
	t, err := in.Tree(ctx)
	if err != nil {
		return nil, err
	}
	objects := mirror.Objects(t, func(ref schemas.Ref) int {
		n, _ := in.Records.Made(ctx, ref) // a record that cannot be read says nothing
		return n
	})
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

// answered are the comments to which a reply of ours stands on an issue of which nothing was read: its record was lost,
// and what was refused then must not act now. What was accepted is known by its specs.
func (in *Inbox) answered(ctx context.Context, f *schemas.MirrorFile, all []github.Comment) (map[int64]bool, error) {
	if !f.Read.Since.IsZero() || len(f.Handled) > 0 {
		return nil, nil
	}
	out := map[int64]bool{}
	for _, c := range all {
		id, isReply := strings.CutPrefix(mirror.Marked(c.Body), "reply/")
		n, err := strconv.ParseInt(id, 10, 64)
		if !isReply || err != nil {
			continue
		}
		me, err := in.Remote.Viewer(ctx)
		if err != nil {
			return nil, err
		}
		out[n] = out[n] || sameUser(c.Author, me)
	}
	return out, nil
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// mine reports whether a comment is one of this program: it is on record, its marker fits its text, or the token's account
// wrote it, with a marker of which the key may be lost. What else holds a marker was copied or made up.
func (in *Inbox) mine(ctx context.Context, f *schemas.MirrorFile, c *github.Comment) (bool, error) {
	if slices.ContainsFunc(f.Comments, func(o schemas.MirrorComment) bool { return o.ID == c.ID }) {
		return true, nil
	}
	if mirror.Marked(c.Body) == "" {
		return false, nil
	}
	if _, ok := in.Keys.Open(c.Body); ok {
		return true, nil
	}
	me, err := in.Remote.Viewer(ctx)
	return err == nil && sameUser(c.Author, me), err
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

// actor is the author of a comment, with what counts of his teams and permission, and whether he may give commands.
func (in *Inbox) actor(ctx context.Context, f *schemas.MirrorFile, c *github.Comment) (slash.Actor, bool, error) {
	a := slash.Actor{Login: c.Author.Login, Association: c.Association, Bot: c.Author.Bot}
	for _, team := range slash.TeamsToAsk(a, &in.Commands) {
		is, err := in.inTeam(ctx, team, a.Login)
		if err != nil {
			return a, false, err
		}
		if is {
			a.Teams = append(a.Teams, team)
			break
		}
	}
	if slash.AsksPermission(a, &in.Commands) && saysSomething(f, c) {
		var err error
		if a.Permission, err = in.permission(ctx, a.Login); err != nil {
			return a, false, err
		}
	}
	return a, slash.Authorize(a, &in.Commands) == nil, nil
}

// saysSomething reports whether a comment may be meant for this program: it has a command, or an agent asked something
// on its issue. Of all others nobody has to know who may what.
func saysSomething(f *schemas.MirrorFile, c *github.Comment) bool {
	return slices.ContainsFunc(f.Comments, func(o schemas.MirrorComment) bool { return strings.HasPrefix(o.Key, "round/") }) ||
		len(slash.Parse(c.Body).Commands) > 0
}

// permission asks once for each login. What the token may not ask gives nobody a right.
func (in *Inbox) permission(ctx context.Context, login string) (string, error) {
	may, known := in.may[login]
	if known {
		return may, nil
	}
	may, err := in.Listener.Permission(ctx, login)
	if ofOne(err) {
		in.heard.note("whether somebody may write to the repository cannot be told, so members whose membership is private "+
			"count only if github.commands.allow lists them: %v", err)
		may, err = "none", nil
	}
	if err != nil {
		return "", err
	}
	if in.may == nil {
		in.may = map[string]string{}
	}
	in.may[login] = may
	return may, nil
}

// inTeam asks once for each team and login. A team that the token does not see has nobody in it.
func (in *Inbox) inTeam(ctx context.Context, team, login string) (bool, error) {
	key := team + " " + login
	is, known := in.teams[key]
	if known {
		return is, nil
	}
	org, name, _ := strings.Cut(team, "/")
	is, err := in.Listener.InTeam(ctx, org, name, login)
	if ofOne(err) {
		in.heard.note("whether somebody is in the team %s cannot be told: %v", team, err)
		is, err = false, nil
	}
	if err != nil {
		return false, err
	}
	if in.teams == nil {
		in.teams = map[string]bool{}
	}
	in.teams[key] = is
	return is, nil
}

// take does what was decided about an issue, comment by comment, and notes how far it was read.
func (in *Inbox) take(ctx context.Context, u unread, verdicts []slash.Verdict) error {
	f := u.issue.File
	var before []int64 // left aside
	for _, c := range u.issue.Comments {
		i := slices.IndexFunc(verdicts, func(v slash.Verdict) bool { return v.Issue == f.Issue && v.Handled.Comment == c.ID })
		if i < 0 {
			before = append(before, c.ID)
			continue
		}
		v := verdicts[i]
		for _, s := range v.Specs {
			if err := in.Write(s); err != nil {
				return err
			}
			in.heard.Specs++
		}
		in.heard.Comments++
		err := in.Records.ChangeIssue(ctx, f.Issue, func(f *schemas.MirrorFile) {
			f.Read.Seen = united(f.Read.Seen, before)
			f.Handled = append(withoutComment(f.Handled, v.Handled.Comment), v.Handled)
		})
		if err != nil {
			return err
		}
	}
	return in.finish(ctx, u)
}

// withoutComment is a list without the entry of a comment.
func withoutComment(list []schemas.MirrorHandled, comment int64) []schemas.MirrorHandled {
	return slices.DeleteFunc(list, func(h schemas.MirrorHandled) bool { return h.Comment == comment })
}

func united(a, b []int64) []int64 {
	out := append(slices.Clip(a), b...)
	slices.Sort(out)
	return slices.Compact(out)
}

// mostHandled is how many comments of an issue are kept on record once everything is told of them.
const mostHandled = 1000

// finish notes how far an issue was read, if that is news. What those wrote who may not give commands is none.
func (in *Inbox) finish(ctx context.Context, u unread) error {
	f, err := in.Records.Issue(ctx, u.issue.File.Issue)
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
	return in.Records.ChangeIssue(ctx, f.Issue, func(f *schemas.MirrorFile) {
		f.Read = read
		for i := 0; len(f.Handled) > mostHandled && i < len(f.Handled); {
			if told(&f.Handled[i]) {
				f.Handled = slices.Delete(f.Handled, i, i+1) // sorted by id: the oldest first
				continue
			}
			i++
		}
	})
}

// told reports whether the author of a comment was told all there is to tell.
func told(h *schemas.MirrorHandled) bool {
	return h.Receipt == github.ThumbsUp || h.Receipt == github.Confused
}

// mostReceipts is how many receipts are given at once: many who write keep no run from its work.
const mostReceipts = 60

// Answer gives the receipts that are missing. It is for after a run, which has decided what Read wrote.
func (in *Inbox) Answer(ctx context.Context) (Heard, error) {
	in.heard = Heard{}
	return in.answer(ctx, true)
}

// answer gives receipts. Unless a run has decided the tree, what it has to decide gets eyes.
func (in *Inbox) answer(ctx context.Context, decided bool) (Heard, error) {
	numbers, err := in.Records.Issues()
	if err != nil {
		return in.heard, err
	}
	var t *state.Tree
	for _, n := range numbers {
		f, err := in.Records.Issue(ctx, n)
		if err != nil {
			return in.heard, err
		}
		for _, h := range acceptedFirst(f.Handled) {
			if told(&h) {
				continue
			}
			if in.heard.Receipts >= mostReceipts {
				in.heard.Later = fmt.Errorf("%d receipts are enough at once", in.heard.Receipts)
				return in.heard, nil
			}
			if decided && t == nil {
				if t, err = in.Tree(ctx); err != nil {
					return in.heard, err
				}
			}
			switch err := in.receipt(ctx, t, n, h); {
			case err == nil:
			case ctx.Err() != nil:
				return in.heard, ctx.Err()
			case github.Later(err):
				in.heard.Later = err
				return in.heard, nil
			case ofOne(err):
				in.heard.note("the author of comment %d on issue #%d is not told: %v", h.Comment, n, err)
			default:
				return in.heard, err
			}
		}
	}
	return in.heard, nil
}

// acceptedFirst are the comments on record in the order in which their authors are told: strangers wait.
func acceptedFirst(list []schemas.MirrorHandled) []schemas.MirrorHandled {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b schemas.MirrorHandled) int { return strings.Compare(a.Outcome, b.Outcome) })
	return list
}

// receipt tells the author of a comment what became of it, as far as that is known.
func (in *Inbox) receipt(ctx context.Context, t *state.Tree, issue int, h schemas.MirrorHandled) error {
	next := settled(h, t)
	if next.Receipt == h.Receipt {
		return nil
	}
	if next.Reply != "" && told(&next) {
		err := in.Say(ctx, issue, mirror.Comment{Key: fmt.Sprintf("reply/%d", h.Comment), Body: next.Reply})
		if err != nil && !errors.Is(err, github.ErrGone) {
			return err
		}
		in.heard.Receipts++
	}
	if err := in.Listener.React(ctx, h.Comment, next.Receipt); err != nil && !errors.Is(err, github.ErrGone) {
		return err // one that was deleted has no author who waits
	}
	in.heard.Receipts++
	if next.Receipt == github.ThumbsUp {
		next.Reply = "" // it can be long, and is told
	}
	return in.Records.ChangeIssue(ctx, issue, func(f *schemas.MirrorFile) {
		f.Handled = append(withoutComment(f.Handled, h.Comment), next)
	})
}

// settled is what is on record of a comment with the receipt that is due; without a tree, what a run has to decide is open.
func settled(h schemas.MirrorHandled, t *state.Tree) schemas.MirrorHandled {
	outcome, why := h.Outcome, h.Reply
	if outcome == schemas.HandledAccepted && len(h.Specs) > 0 {
		outcome = ""
		if t != nil {
			outcome, why = slash.Standing(t, &h)
		}
	}
	switch outcome {
	case schemas.HandledAccepted:
		h.Receipt = github.ThumbsUp
	case schemas.HandledRefused:
		h.Outcome, h.Receipt, h.Reply = outcome, github.Confused, why
	default:
		h.Receipt = github.Eyes
	}
	return h
}
