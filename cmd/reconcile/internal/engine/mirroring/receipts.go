package mirroring

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/github"
	"reconcile.dev/reconcile/controllers/mirror"
	"reconcile.dev/reconcile/controllers/slash"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// maxHandled is how many fully answered comments of an issue are kept on record.
const maxHandled = 1000

// isAnswered reports whether a comment has its final receipt.
func isAnswered(h *schemas.MirrorHandled) bool {
	return h.Receipt == github.ThumbsUp || h.Receipt == github.Confused
}

// maxReceipts bounds the receipts of one call: many comments must not delay the run.
const maxReceipts = 60

// Answer answers the comments of the inbox with the receipts that are missing. It is called after a run, which has
// decided on the specs of Read.
func (in *Inbox) Answer(ctx context.Context) (ReadResult, error) {
	in.result = ReadResult{}
	return in.answer(ctx, true)
}

// answer gives receipts. Before a run has decided on the tree, undecided comments get the eyes reaction.
func (in *Inbox) answer(ctx context.Context, decided bool) (ReadResult, error) {
	numbers, err := in.Mirror.Records.Issues()
	if err != nil {
		return in.result, err
	}
	var t *state.Tree
	for _, n := range numbers {
		f, err := in.Mirror.Records.Issue(ctx, n)
		if err != nil {
			return in.result, err
		}
		for _, h := range acceptedFirst(f.Handled) {
			if isAnswered(&h) {
				continue
			}
			if in.result.Receipts >= maxReceipts {
				in.result.Later = fmt.Errorf("%d receipts are enough at once", in.result.Receipts)
				return in.result, nil
			}
			if decided && t == nil {
				if t, err = in.Tree(ctx); err != nil {
					return in.result, err
				}
			}
			switch err := in.receipt(ctx, t, n, h); {
			case err == nil:
			case ctx.Err() != nil:
				return in.result, ctx.Err()
			case github.Later(err):
				in.result.Later = err
				return in.result, nil
			case isLocal(err):
				in.result.note("the author of comment %d on issue #%d is not told: %v", h.Comment, n, err)
			default:
				return in.result, err
			}
		}
	}
	return in.result, nil
}

// acceptedFirst sorts the comments on record in the order in which they are answered: strangers come last.
func acceptedFirst(list []schemas.MirrorHandled) []schemas.MirrorHandled {
	list = slices.Clone(list)
	slices.SortStableFunc(list, func(a, b schemas.MirrorHandled) int { return strings.Compare(a.Outcome, b.Outcome) })
	return list
}

// receipt answers a comment with its result, if that is known.
func (in *Inbox) receipt(ctx context.Context, t *state.Tree, issue int, h schemas.MirrorHandled) error {
	next := withReceipt(h, t)
	if next.Receipt == h.Receipt {
		return nil
	}
	if next.Reply != "" && isAnswered(&next) {
		err := in.Mirror.say(ctx, issue, mirror.Comment{Key: fmt.Sprintf("reply/%d", h.Comment), Body: next.Reply})
		if err != nil && !errors.Is(err, github.ErrGone) {
			return err
		}
		in.result.Receipts++
	}
	if err := in.Client.React(ctx, h.Comment, next.Receipt); err != nil && !errors.Is(err, github.ErrGone) {
		return err // a deleted comment needs no answer
	}
	in.result.Receipts++
	if next.Receipt == github.ThumbsUp {
		next.Reply = "" // it can be long, and was sent
	}
	return in.Mirror.Records.changeIssue(ctx, issue, func(f *schemas.MirrorFile) {
		f.Handled = append(withoutComment(f.Handled, h.Comment), next)
	})
}

// withReceipt returns the record of a comment with its current receipt; without a tree, comments that a run has to
// decide are pending.
func withReceipt(h schemas.MirrorHandled, t *state.Tree) schemas.MirrorHandled {
	outcome, why := h.Outcome, h.Reply
	if outcome == schemas.HandledAccepted && len(h.Specs) > 0 {
		outcome = ""
		if t != nil {
			outcome, why = slash.OutcomeOf(t, &h)
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

// answered are the comments that have a reply of ours on an issue without a read position: its record was lost, and
// comments that were refused before must not take effect now. Accepted comments are known by their specs.
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
		me, err := in.Mirror.Remote.Viewer(ctx)
		if err != nil {
			return nil, err
		}
		out[n] = out[n] || sameUser(c.Author, me)
	}
	return out, nil
}
