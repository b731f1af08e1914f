package clarify

import (
	"slices"

	"reconcile.dev/reconcile/schemas"
)

// Renumber gives the next numbers to the records of an old ledger that have the number of another record, so that each
// can be meant. Those records are of other programs. The number stays with the record of a request, else with the one
// that ours has taken up, else with the first. Copies of one matter are united. ours are the records of all requests of
// the issue that have a number. It is pure; a ledger without such records comes back as it is, byte for byte. The error
// is [ErrNoLedger].
func Renumber(old []byte, issue int, ours []schemas.Clarification) ([]byte, error) {
	f, err := readFile(old, issue)
	if err != nil {
		return nil, err
	}
	last := lastSeq(f.extra[schemas.LedgerLastID], issue)
	for i := range f.records {
		last = max(last, LastSeq(issue, f.records[i].ID))
	}
	for _, c := range ours {
		last = max(last, LastSeq(issue, c.ID))
	}
	changed := false
	for i := range f.records {
		r := &f.records[i]
		keeper := f.keeper(r, ours)
		if r.bad || r.gone || r.Request != "" || keeper == nil || keeper == r {
			continue
		}
		changed = true
		if keeper.Request == "" && sameQuestion(&keeper.Clarification, &r.Clarification) {
			if err := keeper.unite(r); err != nil {
				return nil, err
			}
			continue
		}
		last++
		c := r.Clarification
		c.ID = FormatID(issue, last)
		if err := r.set(&c); err != nil {
			return nil, err
		}
	}
	if !changed {
		return old, nil
	}
	f.forgetLast()
	f.sort()
	return f.encode()
}

// keeper returns the record that keeps the number of r; nil if no other record has the number.
func (f *file) keeper(r *record, ours []schemas.Clarification) *record {
	var same []*record
	for i := range f.records {
		if o := &f.records[i]; o.ID == r.ID && !o.bad && !o.gone {
			same = append(same, o)
		}
	}
	if len(same) < 2 {
		return nil
	}
	i := slices.IndexFunc(same, func(o *record) bool { return o.Request != "" })
	if i < 0 {
		i = slices.IndexFunc(same, func(o *record) bool {
			return slices.ContainsFunc(ours, func(c schemas.Clarification) bool {
				return c.ID == o.ID && (sameQuestion(&o.Clarification, &c) || takenUp(&o.Clarification, &c))
			})
		})
	}
	return same[max(i, 0)]
}

// dropCopies marks records without a request name that record i has taken up, as a merge of branches can leave them.
func (f *file) dropCopies(i int) (dropped bool) {
	kept := &f.records[i]
	for _, j := range f.byID[kept.ID] {
		r := &f.records[j]
		if j == i || r.gone || r.Request != "" || kept.Request == "" || r.ID != kept.ID {
			continue
		}
		if sameQuestion(&r.Clarification, &kept.Clarification) && len(foreignTurns(r.Thread, kept.Thread)) == 0 {
			r.gone, dropped = true, true
		}
	}
	return dropped
}
