package clarify

import (
	"errors"
	"fmt"
	"slices"

	"reconcile.dev/reconcile/schemas"
)

// ErrStale is the error of a fold into a ledger that has entries which the statuses do not include yet: another
// program wrote them.
var ErrStale = errors.New("another program changed the ledger")

// ErrNoLedger is the error of a fold into a file that is not a ledger of the issue. It is not overwritten: a user
// must move it aside first.
var ErrNoLedger = errors.New("not a ledger of this issue")

// Fold folds our clarification records of an issue into its old ledger, and returns the ledger's new content; nil old
// is a ledger that does not exist. It is pure. Records, turns and fields of other programs are kept. A ledger that has
// everything already comes back as it is, byte for byte.
//
// A record is ours if it has our id and request name, or our id and, where another program wrote it or dropped the
// name, the same parties, topic and first question, or no turn that we do not have. A record that we have under another
// id is renumbered if that id is also another matter's: two branches gave it twice.
//
// The errors are [ErrNoLedger], and [ErrStale] where an id is taken (by another record, or twice among ours), a turn is
// unknown, or a status is ahead of ours.
func Fold(old []byte, issue int, ours []schemas.Clarification) ([]byte, error) {
	if old == nil && len(ours) == 0 {
		return nil, nil
	}
	f := &ledgerFile{issue: issue}
	if old != nil {
		var err error
		if f, err = readFile(old, issue); err != nil {
			return nil, err
		}
	}
	f.index()
	changed := old == nil
	given := make(map[string]bool, len(ours))
	for i := range ours {
		c, err := f.put(&ours[i])
		if given[ours[i].ID] {
			err = fmt.Errorf("two requests have the id: %w", ErrStale)
		}
		given[ours[i].ID] = true
		if err != nil {
			return nil, fmt.Errorf("%s (%s) in the ledger of issue %d: %w", ours[i].ID, ours[i].Request, issue, err)
		}
		changed = changed || c
	}
	if !changed {
		return old, nil
	}
	f.forgetLast()
	f.sort()
	return f.encode()
}

// takenUp reports whether c was made from a record without a request name. It may have no thread, or a text longer than
// the limit of a request: then the status has its turns.
func takenUp(theirs, c *schemas.Clarification) bool {
	if theirs.From != c.From || theirs.To != c.To {
		return false
	}
	if len(theirs.Thread) == 0 {
		return theirs.Topic == c.Topic
	}
	return len(foreignTurns(theirs.Thread, c.Thread)) == 0
}

// recordLike finds the record of the same id and request, else of the same question under that id; nil if it does not
// exist.
func recordLike(all []ledgerRecord, r *ledgerRecord) *ledgerRecord {
	var like *ledgerRecord
	for i := range all {
		switch o := &all[i]; {
		case o.ID != r.ID:
		case o.Request == r.Request:
			return o
		case sameQuestion(&o.Clarification, &r.Clarification):
			like = o
		}
	}
	return like
}

// ownOf finds what this tree knows of the matter of a record; nil if it is not one of its requests.
func ownOf(ours []schemas.Clarification, r *schemas.Clarification) *schemas.Clarification {
	i := slices.IndexFunc(ours, func(c schemas.Clarification) bool {
		if r.Request != "" {
			return r.Request == c.Request
		}
		return sameQuestion(r, &c) || takenUp(r, &c)
	})
	if i < 0 {
		return nil
	}
	return &ours[i]
}

// foreignTurns lists the turns of theirs that ours does not have, in their order.
func foreignTurns(theirs, ours []schemas.ClarificationTurn) []schemas.ClarificationTurn {
	var out []schemas.ClarificationTurn
	taken := make([]bool, len(ours))
next:
	for _, t := range theirs {
		for i := range ours {
			if !taken[i] && sameTurn(t, ours[i]) {
				taken[i] = true
				continue next
			}
		}
		out = append(out, t)
	}
	return out
}

// foldAhead reports whether another program advanced a record further than the status, without an entry for it. Decide
// follows it, and Fold refuses to overwrite it.
func foldAhead(theirs *schemas.Clarification, phase string, round int) bool {
	var from []string
	switch theirs.Status {
	case schemas.ClarificationAbandoned, schemas.ClarificationStale:
		from = []string{schemas.ClarificationPending}
	case schemas.ClarificationEscalated:
		from = []string{schemas.ClarificationPending, schemas.ClarificationAnswered, schemas.ClarificationStale}
	case schemas.ClarificationResolved:
		from = []string{schemas.ClarificationAnswered, schemas.ClarificationEscalated}
	}
	sameRound := theirs.Round == round || theirs.Status == schemas.ClarificationResolved && theirs.Round > round
	if slices.Contains(from, phase) {
		return sameRound
	}
	return false
}

func entryOf(st *schemas.ClarificationRequestStatus, name string) *schemas.ThreadEntry {
	for i := range st.Thread {
		if st.Thread[i].Source == replySource(name) {
			return &st.Thread[i]
		}
	}
	return nil
}
