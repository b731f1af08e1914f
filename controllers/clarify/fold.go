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

// Record makes the ledger's record of a clarification request from its name, spec and status.
func Record(name string, spec *schemas.ClarificationRequestSpec,
	st *schemas.ClarificationRequestStatus) schemas.Clarification {
	return schemas.Clarification{ID: st.ID, From: spec.From, To: spec.To, Topic: spec.Topic, Blocking: spec.Blocking,
		Status: st.Phase, Round: st.Round, MaxRounds: st.MaxRounds, Created: st.Created, StaleAfter: st.StaleAfter,
		ResolvedAt: st.ResolvedAt, Thread: turns(st.Thread), Request: name}
}

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
	f := &file{issue: issue}
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

// put merges one record into the file, and reports whether that changed anything.
func (f *file) put(c *schemas.Clarification) (changed bool, err error) {
	i, err := f.place(c)
	if err != nil {
		return false, err
	}
	if i < 0 {
		i = len(f.records)
		f.records = append(f.records, record{})
		err = f.records[i].set(c)
		f.note(i)
		return true, err
	}
	r := &f.records[i]
	if len(foreign(r.Thread, c.Thread)) > 0 || ahead(&r.Clarification, c.Status, c.Round) {
		return false, ErrStale
	}
	if !r.same(c) {
		changed, err = true, r.set(c)
		f.note(i) // its id may be another one now
	}
	return f.dropCopies(i) || changed, err
}

// place finds the record of c: its index, or -1 where c is new.
func (f *file) place(c *schemas.Clarification) (int, error) {
	same := f.byID[c.ID]
	for _, i := range same {
		if f.records[i].ID == c.ID && f.records[i].Request == c.Request {
			return i, nil
		}
	}
	for _, alike := range []func(theirs, ours *schemas.Clarification) bool{sameQuestion, takenUp} {
		for _, i := range same {
			if r := &f.records[i]; r.ID == c.ID && r.Request == "" && !r.gone && alike(&r.Clarification, c) {
				return i, nil
			}
		}
	}
	if slices.ContainsFunc(same, func(i int) bool { return f.records[i].ID == c.ID }) {
		return 0, fmt.Errorf("the id is taken: %w", ErrStale)
	}
	i, known := f.byName[c.Request]
	switch {
	case !known || c.Request == "" || !sameQuestion(&f.records[i].Clarification, c): // a name that is used again
		return -1, nil
	case len(f.byID[f.records[i].ID]) < 2: // not an id that was given twice
		return 0, fmt.Errorf("the request has the id %s there: %w", f.records[i].ID, ErrStale)
	}
	return i, nil
}

// dropCopies marks records without a request name that record i has taken up, as a merge of branches can leave them.
func (f *file) dropCopies(i int) (dropped bool) {
	kept := &f.records[i]
	for _, j := range f.byID[kept.ID] {
		r := &f.records[j]
		if j == i || r.gone || r.Request != "" || kept.Request == "" || r.ID != kept.ID {
			continue
		}
		if sameQuestion(&r.Clarification, &kept.Clarification) && len(foreign(r.Thread, kept.Thread)) == 0 {
			r.gone, dropped = true, true
		}
	}
	return dropped
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
	return len(foreign(theirs.Thread, c.Thread)) == 0
}

// sameQuestion reports whether two records are about one question.
func sameQuestion(a, b *schemas.Clarification) bool {
	return a.From == b.From && a.To == b.To && a.Topic == b.Topic && firstQuestion(a) == firstQuestion(b)
}
