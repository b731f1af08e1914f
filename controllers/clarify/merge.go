package clarify

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"reconcile.dev/reconcile/schemas"
)

// Merge merges two diverged ledgers a and b of one issue: their records, the turns of their threads and their unknown
// fields. It is commutative, associative and idempotent, and loses nothing: records are matched by (id, request), turns
// by content, unknown fields by name. If the two differ, the more advanced wins: resolved over abandoned over
// escalated, then the later round. The result is in canonical form.
func Merge(a, b []byte, issue int) ([]byte, error) {
	x, err := readFile(a, issue)
	if err != nil {
		return nil, err
	}
	y, err := readFile(b, issue)
	if err != nil {
		return nil, err
	}
	lasts := [2]json.RawMessage{x.extra[schemas.LedgerLastID], y.extra[schemas.LedgerLastID]}
	if x.extra, err = joinExtras(x.extra, y.extra); err != nil {
		return nil, err
	}
	for _, last := range lasts {
		if lastSeq(last, issue) > lastSeq(x.extra[schemas.LedgerLastID], issue) {
			x.extra[schemas.LedgerLastID] = last
		}
	}
	all := map[[2]string]*ledgerRecord{}
	for _, r := range slices.Concat(x.records, y.records) {
		if r.bad {
			text, err := r.plain()
			if err != nil {
				return nil, err
			}
			all[[2]string{"", string(text)}] = &ledgerRecord{raw: text, bad: true, Clarification: r.Clarification}
			continue
		}
		if err := r.thaw(); err != nil {
			return nil, err
		}
		key := [2]string{r.ID, r.Request}
		if all[key] == nil {
			head := r
			head.Thread, head.entries = nil, nil
			all[key] = &head
		}
		if err := all[key].join(&r); err != nil {
			return nil, fmt.Errorf("%s: %w", r.ID, err)
		}
	}
	x.records = x.records[:0]
	for _, r := range all {
		x.records = append(x.records, *r)
	}
	x.sort()
	return x.encode()
}

// ranks order the states for a merge; a state that is not known comes before all.
var ranks = map[string]int{schemas.ClarificationPending: 1, schemas.ClarificationStale: 2,
	schemas.ClarificationAnswered: 3, schemas.ClarificationEscalated: 4, schemas.ClarificationAbandoned: 5,
	schemas.ClarificationResolved: 6}

// mergeProgress is the part of a record that changes together: it is taken from one side as a whole.
func mergeProgress(a, b *schemas.Clarification) int {
	past := func(c *schemas.Clarification) int {
		return max(ranks[c.Status]-ranks[schemas.ClarificationAnswered], 0)
	}
	return cmp.Or(cmp.Compare(past(a), past(b)), cmp.Compare(a.Round, b.Round),
		cmp.Compare(ranks[a.Status], ranks[b.Status]), strings.Compare(a.Status, b.Status),
		a.StaleAfter.Compare(b.StaleAfter.Time), a.ResolvedAt.Compare(b.ResolvedAt.Time))
}

// join takes the other record into r: each field becomes the greater of the two by a total order, so that it does not
// matter in which order records are joined.
func (r *ledgerRecord) join(o *ledgerRecord) error {
	a, b := &r.Clarification, &o.Clarification
	if mergeProgress(b, a) > 0 {
		a.Status, a.Round, a.StaleAfter, a.ResolvedAt = b.Status, b.Round, b.StaleAfter, b.ResolvedAt
	}
	a.ID, a.Request = max(a.ID, b.ID), max(a.Request, b.Request)
	a.From, a.To, a.Topic = max(a.From, b.From), max(a.To, b.To), max(a.Topic, b.Topic)
	a.Blocking, a.MaxRounds = a.Blocking || b.Blocking, max(a.MaxRounds, b.MaxRounds)
	a.Created = schemas.Earlier(a.Created, b.Created)
	var err error
	if r.extra, err = joinExtras(r.extra, o.extra); err != nil {
		return err
	}
	return r.joinThreads(o)
}

// turn is a turn with its unknown fields.
type turn struct {
	schemas.ClarificationTurn
	extra extras
}

// joinThreads unites the turns. The same turn at two times keeps the earlier one.
func (r *ledgerRecord) joinThreads(o *ledgerRecord) error {
	all := map[schemas.ClarificationTurn]*turn{}
	for _, side := range []*ledgerRecord{r, o} {
		for i, t := range side.Thread {
			key := t
			key.Timestamp = schemas.Time{}
			known := all[key]
			if known == nil {
				all[key] = &turn{t, side.entries[i]}
				continue
			}
			known.Timestamp = schemas.Earlier(known.Timestamp, t.Timestamp)
			var err error
			if known.extra, err = joinExtras(known.extra, side.entries[i]); err != nil {
				return err
			}
		}
	}
	r.Thread, r.entries = nil, nil
	for _, t := range slices.SortedFunc(maps.Values(all), compareTurns) {
		r.Thread, r.entries = append(r.Thread, t.ClarificationTurn), append(r.entries, t.extra)
	}
	return nil
}

// turnOrder is the order of turns at one time in one round.
var turnOrder = []string{schemas.TurnQuestion, schemas.TurnAnswer, schemas.TurnEscalation, schemas.TurnResolution}

func compareTurns(a, b *turn) int {
	return cmp.Or(a.Timestamp.Compare(b.Timestamp.Time), cmp.Compare(a.Round, b.Round),
		cmp.Compare(slices.Index(turnOrder, a.Type), slices.Index(turnOrder, b.Type)), strings.Compare(a.Type, b.Type),
		strings.Compare(a.From, b.From), strings.Compare(a.Body, b.Body))
}

// joinExtras unites unknown fields. Of two values of one field the greater one stays, compared without blanks.
func joinExtras(a, b extras) (extras, error) {
	if len(b) == 0 {
		return a, nil
	}
	out := maps.Clone(a)
	if out == nil {
		out = extras{}
	}
	for name, v := range b {
		was, known := out[name]
		x, err := compactJSON(was)
		if err != nil {
			return nil, err
		}
		y, err := compactJSON(v)
		if err != nil {
			return nil, err
		}
		if !known || bytes.Compare(y, x) > 0 {
			out[name] = v
		}
	}
	return out, nil
}

// CompareProgress compares the progress of two clarifications, which are states of one question: the more advanced is
// greater. See [Merge].
func CompareProgress(a, b *schemas.Clarification) int { return mergeProgress(a, b) }

// CompareTurns compares two turns of a clarification's thread: by time, then by type and content.
func CompareTurns(a, b schemas.ClarificationTurn) int {
	return compareTurns(&turn{ClarificationTurn: a}, &turn{ClarificationTurn: b})
}

func compareRecords(a, b *ledgerRecord) int {
	_, x, okA := ParseID(a.ID)
	_, y, okB := ParseID(b.ID)
	if okA != okB {
		return cmp.Compare(btoi(!okA), btoi(!okB))
	}
	order := cmp.Or(cmp.Compare(x, y), strings.Compare(a.ID, b.ID), cmp.Compare(btoi(a.bad), btoi(b.bad)),
		strings.Compare(a.Request, b.Request))
	if order == 0 && a.bad {
		return bytes.Compare(a.raw, b.raw)
	}
	return order
}

// sameQuestion reports whether two records are about one question.
func sameQuestion(a, b *schemas.Clarification) bool {
	return a.From == b.From && a.To == b.To && a.Topic == b.Topic && firstQuestion(a) == firstQuestion(b)
}

// unite takes a copy of the record into it.
func (r *ledgerRecord) unite(o *ledgerRecord) error {
	for _, each := range []*ledgerRecord{r, o} {
		if err := each.thaw(); err != nil {
			return err
		}
	}
	o.gone = true
	return r.join(o)
}

// The lines with which git marks a conflict begin so. The part between base and between is that of the common ancestor.
const (
	markOurs    = "<<<<<<< "
	markBase    = "||||||| "
	markBetween = "======="
	markTheirs  = ">>>>>>> "
)

// Unite makes one ledger of what a git merge left: a text with conflict markers. Both sides have to be ledgers of the
// issue; the error is else [ErrNoLedger]. See [Merge].
func Unite(conflicted []byte, issue int) ([]byte, error) {
	ours, theirs, ok := conflictSides(conflicted)
	if !ok {
		return nil, fmt.Errorf("%w: it holds no whole conflict of a git merge", ErrNoLedger)
	}
	return Merge(ours, theirs, issue)
}

// conflictSides splits a text with conflict markers into its two sides; ok is false if markers are missing.
func conflictSides(text []byte) (ours, theirs []byte, ok bool) {
	part := "" // the mark that the present part began with
	for line := range bytes.Lines(text) {
		next, allowed := partAt(line, part)
		switch {
		case !allowed:
			return nil, nil, false
		case next != "":
			part, ok = next, true
		case part == "" || part == markTheirs:
			ours, theirs = append(ours, line...), append(theirs, line...)
		case part == markOurs:
			ours = append(ours, line...)
		case part == markBetween:
			theirs = append(theirs, line...)
		}
	}
	return ours, theirs, ok && part == markTheirs
}

// partAt returns the conflict mark of a line, "" for other lines; allowed is false if it may not follow the present part.
// In a ledger no other line begins so: every line of our JSON begins with a blank or a bracket.
func partAt(line []byte, part string) (mark string, allowed bool) {
	for _, m := range []struct {
		mark  string
		after []string
	}{
		{markOurs, []string{"", markTheirs}}, {markBase, []string{markOurs}},
		{markBetween, []string{markOurs, markBase}}, {markTheirs, []string{markBetween}},
	} {
		if bytes.HasPrefix(line, []byte(m.mark)) {
			return m.mark, slices.Contains(m.after, part)
		}
	}
	return "", true
}

// Carry carries into the ledger next, which replaces the ledger there, what other programs wrote into there and was not
// processed yet: records, turns and more advanced states. base is the last common ancestor of both: what is in it but
// not in next was removed. ours are the records of the requests as this tree knows them, without the turns that it
// knows from the ledger alone; the consequences of those are decided again from next, so Carry does not copy them. A
// nil ledger does not exist, and an unreadable one is ignored. Carry is pure.
func Carry(base, there, next []byte, issue int, ours []schemas.Clarification) ([]byte, error) {
	f, err := readFile(there, issue)
	if err != nil {
		return next, nil //nolint:nilerr // damaged, or not there: there is nothing to carry
	}
	was, to := carriedRecords(base, issue), carriedRecords(next, issue)
	kept := f.records[:0]
	for i := range f.records {
		r := &f.records[i]
		if r.bad {
			if !slices.ContainsFunc(slices.Concat(was, to), func(o ledgerRecord) bool { return o.saysAs(r) }) {
				kept = append(kept, *r)
			}
			continue
		}
		carry, err := r.carry(recordLike(was, r), recordLike(to, r), ownOf(ours, &r.Clarification))
		if err != nil {
			return nil, err
		}
		if carry {
			kept = append(kept, *r)
		}
	}
	if f.records = kept; len(kept) == 0 {
		return next, nil
	}
	data, err := f.encode()
	if err != nil || next == nil {
		return data, err
	}
	merged, err := Merge(next, data, issue)
	if errors.Is(err, ErrNoLedger) {
		return next, nil // it is set aside where it is read
	}
	return merged, err
}

// carriedRecords are those of a ledger; none if it cannot be read.
func carriedRecords(data []byte, issue int) []ledgerRecord {
	if f, err := readFile(data, issue); err == nil {
		return f.records
	}
	return nil
}

// carry reports whether a record has something of another program, and cuts it down to that where next has the record.
func (r *ledgerRecord) carry(was, next *ledgerRecord, own *schemas.Clarification) (bool, error) {
	rest := slices.Clone(r.Thread)
	for _, known := range []*ledgerRecord{was, next} {
		if known != nil {
			rest = foreignTurns(rest, known.Thread)
		}
	}
	moved := was == nil || was.Status != r.Status
	switch {
	case own == nil && r.Request != "":
		return false, nil // of a removed request: next has its outcome
	case own == nil:
		moved = moved && next == nil
	default:
		rest = foreignTurns(rest, own.Thread)
		moved = moved && foldAhead(&r.Clarification, own.Status, own.Round)
	}
	if len(rest) == 0 && !moved || next == nil {
		return len(rest) > 0 || moved, nil
	}
	c := next.Clarification
	c.ID, c.Request, c.Thread = next.ID, next.Request, rest
	if moved {
		c.Status, c.Round, c.StaleAfter, c.ResolvedAt = r.Status, r.Round, r.StaleAfter, r.ResolvedAt
	}
	return true, r.set(&c)
}

// saysAs reports whether two records are equal, ignoring blanks.
func (r *ledgerRecord) saysAs(o *ledgerRecord) bool {
	a, err := compactJSON(r.raw)
	b, err2 := compactJSON(o.raw)
	return err == nil && err2 == nil && bytes.Equal(a, b)
}
