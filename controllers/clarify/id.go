package clarify

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

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
func (f *ledgerFile) keeper(r *ledgerRecord, ours []schemas.Clarification) *ledgerRecord {
	var same []*ledgerRecord
	for i := range f.records {
		if o := &f.records[i]; o.ID == r.ID && !o.bad && !o.gone {
			same = append(same, o)
		}
	}
	if len(same) < 2 {
		return nil
	}
	i := slices.IndexFunc(same, func(o *ledgerRecord) bool { return o.Request != "" })
	if i < 0 {
		i = slices.IndexFunc(same, func(o *ledgerRecord) bool {
			return slices.ContainsFunc(ours, func(c schemas.Clarification) bool {
				return c.ID == o.ID && (sameQuestion(&o.Clarification, &c) || takenUp(&o.Clarification, &c))
			})
		})
	}
	return same[max(i, 0)]
}

// dropCopies marks records without a request name that record i has taken up, as a merge of branches can leave them.
func (f *ledgerFile) dropCopies(i int) (dropped bool) {
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

// FormatID formats the id of a clarification from its issue and sequence number: CLR-<issue>-<seq>, with three digits
// or more (decision 9). Issue 0 means no issue.
func FormatID(issue, seq int) string { return fmt.Sprintf("CLR-%d-%03d", issue, seq) }

// ParseID splits an id. ok is false for other text.
func ParseID(id string) (issue, seq int, ok bool) {
	if !schemas.IsClarificationID(id) {
		return 0, 0, false
	}
	first, second, _ := strings.Cut(strings.TrimPrefix(id, "CLR-"), "-")
	issue, err := strconv.Atoi(first)
	if err != nil {
		return 0, 0, false
	}
	seq, err = strconv.Atoi(second)
	return issue, seq, err == nil
}

// ReadID completes a word as people type it, in any case and without the zeros in front, to the id of a clarification:
// clr-42-1 is CLR-42-001.
func ReadID(word string) (id string, issue int, ok bool) {
	parts := strings.Split(strings.ToUpper(word), "-")
	if len(parts) != 3 || parts[2] == "" {
		return "", 0, false
	}
	for len(parts[2]) < 3 {
		parts[2] = "0" + parts[2]
	}
	id = strings.Join(parts, "-")
	issue, _, ok = ParseID(id)
	return id, issue, ok
}

// LastSeq returns the last and highest sequence number that the ids of an issue have, 0 without any. The next new
// question gets the one after it.
func LastSeq(issue int, ids ...string) int {
	last := 0
	for _, id := range ids {
		if of, seq, ok := ParseID(id); ok && of == issue {
			last = max(last, seq)
		}
	}
	return last
}

func (d *clarifyDecider) nextSeq(node, key string) int {
	seq := 0
	for _, r := range d.input.Runs {
		if r.Node == node && r.NodeKey == key {
			seq = max(seq, r.Seq)
		}
	}
	return seq + 1
}

// highest is the highest number of an id of the issue that stands anywhere in a text, 0 for none. One after which no
// further one could be given counts as none.
func highest(text []byte, issue int) int {
	const most = 99_999_999 // ids have up to nine digits: enough are left
	last := 0
	for _, m := range regexp.MustCompile(`CLR-`+strconv.Itoa(issue)+`-([0-9]{1,9})`).FindAllSubmatch(text, -1) {
		if seq, err := strconv.Atoi(string(m[1])); err == nil && seq <= most {
			last = max(last, seq)
		}
	}
	return last
}
