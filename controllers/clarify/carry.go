package clarify

import (
	"bytes"
	"errors"
	"slices"

	"reconcile.dev/reconcile/schemas"
)

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
			if !slices.ContainsFunc(slices.Concat(was, to), func(o record) bool { return o.saysAs(r) }) {
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
func carriedRecords(data []byte, issue int) []record {
	if f, err := readFile(data, issue); err == nil {
		return f.records
	}
	return nil
}

// carry reports whether a record has something of another program, and cuts it down to that where next has the record.
func (r *record) carry(was, next *record, own *schemas.Clarification) (bool, error) {
	rest := slices.Clone(r.Thread)
	for _, known := range []*record{was, next} {
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
func (r *record) saysAs(o *record) bool {
	a, err := compactJSON(r.raw)
	b, err2 := compactJSON(o.raw)
	return err == nil && err2 == nil && bytes.Equal(a, b)
}
