package mirroring

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
	"reconcile.dev/reconcile/controllers/mirror"
	"reconcile.dev/reconcile/controllers/slash"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// take does what was decided about an issue, comment by comment, and notes how far it was read.
func (in *Inbox) take(ctx context.Context, u unread, verdicts []slash.Decision) error {
	f := u.issue.File
	var before []int64 // left aside
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
