package state

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path"
	"slices"
	"strconv"
	"strings"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/sections"
)

// ParseLedger decodes the content of the ledger file at p. It accepts fields that schemas does not name, and unknown
// states of clarifications: a newer or third-party program may have written them. It rejects single invalid records, for
// example with the number of another issue. Everything else is an error.
func ParseLedger(p string, data []byte) (*Ledger, error) {
	issue, ok := ledgerIssue(path.Base(p))
	if !ok {
		return nil, fmt.Errorf("%s is not named like a ledger, as issue-42.json", p)
	}
	l := &Ledger{Issue: issue, Path: p}
	records, last, err := decodeLedger(issue, data)
	if err != nil || slices.ContainsFunc(records, func(c schemas.Clarification) bool { return !isOf(issue, c.ID) }) {
		records, last, err = l.decodeEach(data)
	}
	if err != nil {
		return nil, err
	}
	l.giveNumber(last)
	l.Doubled = doubledRecord(records)
	for i := range records {
		l.giveNumber(records[i].ID)
		if records[i].Open() {
			l.Open++
			l.Foreign = l.Foreign || records[i].Request == ""
		}
	}
	e := encoder{Encoder: sections.Encoder{B: make([]byte, 0, 2*len(data)/3)}}
	e.ledger(records)
	l.packed = bytes.Clone(e.B)
	return l, nil
}

// doubledRecord reports whether several records of a ledger file have one id.
func doubledRecord(records []schemas.Clarification) bool {
	given := make(map[string]bool, len(records))
	for i := range records {
		given[records[i].ID] = true
	}
	return len(given) < len(records)
}

// isOf reports whether an id is one of the issue.
func isOf(issue int, id string) bool {
	_, err := ledgerSequence(issue, id)
	return err == nil
}

// giveNumber records an id that is in use, if it is valid for the issue.
func (l *Ledger) giveNumber(id string) {
	if seq, err := ledgerSequence(l.Issue, id); err == nil {
		l.Last = max(l.Last, seq)
	}
}

// decodeEach is decodeLedger for a ledger with unusable records, which it rejects.
func (l *Ledger) decodeEach(data []byte) (records []schemas.Clarification, last string, err error) {
	raws, last, err := decodeLedgerAs[json.RawMessage](l.Issue, data)
	if err != nil {
		return nil, "", err
	}
	at := 0
	for i, raw := range raws {
		if next := bytes.Index(data[at:], raw); next >= 0 {
			at += next
		}
		c, err := decodeRecord(l.Issue, raw)
		if err == nil {
			records = append(records, c)
		} else {
			line := 1 + bytes.Count(data[:at], []byte("\n"))
			id := idIn(raw)
			if !isOf(l.Issue, id) {
				id = ""
			}
			l.Rejected = append(l.Rejected, RejectedRecord{Line: line, Number: i + 1, ID: id, Reason: err.Error()})
			l.giveNumber(id)
		}
		at += len(raw)
	}
	return records, last, nil
}

// decodeRecord decodes one record of a ledger.
func decodeRecord(issue int, raw []byte) (c schemas.Clarification, err error) {
	if err = json.Unmarshal(raw, &c); err != nil {
		return c, plain(err)
	}
	_, err = ledgerSequence(issue, c.ID)
	return c, err
}

// idIn returns the id of a record that may otherwise be invalid.
func idIn(raw []byte) string {
	var head struct{ ID string }
	if json.Unmarshal(raw, &head) != nil {
		return ""
	}
	return head.ID
}

// decodeLedger returns the records in the content of a ledger, and its [schemas.LedgerLastID], if that is a string. It
// distinguishes a missing list from an empty one. The strings of the records are parts of data.
func decodeLedger(issue int, data []byte) (records []schemas.Clarification, last string, err error) {
	return decodeLedgerAs[schemas.Clarification](issue, data)
}

// decodeLedgerAs is decodeLedger for records of type R.
func decodeLedgerAs[R any](issue int, data []byte) (records []R, last string, err error) {
	var l struct {
		IssueNumber    *int `json:"issueNumber"`
		Clarifications *[]R `json:"clarifications"`
		LastID         any  `json:"lastId"` // of any type: third-party programs need not know it
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if err := decodeState(data, data, &l); err != nil {
		return nil, "", err
	}
	switch {
	case l.IssueNumber == nil || l.Clarifications == nil:
		return nil, "", errors.New("it is no ledger: an issueNumber or the list of clarifications is missing")
	case *l.IssueNumber != issue:
		return nil, "", fmt.Errorf("it is the ledger of issue %d", *l.IssueNumber)
	}
	last, _ = l.LastID.(string)
	return *l.Clarifications, last, nil
}

// ledgerSequence returns the last part of an id: 1 for CLR-42-001.
func ledgerSequence(issue int, id string) (int, error) {
	rest, ok := strings.CutPrefix(id, "CLR-"+strconv.Itoa(issue)+"-")
	if !ok || !schemas.IsClarificationID(id) {
		return 0, fmt.Errorf("its id %q is not one of issue %d", id, issue)
	}
	return strconv.Atoi(rest)
}

// Records returns all clarifications in the ledger, decoded, in the order of its file. They are decoded on first access.
// Callers must not change them.
func (l *Ledger) Records() []schemas.Clarification {
	l.decode.Do(func() {
		d := decoder{Decoder: sections.Decoder{B: l.encoded()}}
		l.records = d.clarifications()
	})
	return l.records
}

// encoded returns the records as encoder.ledger writes them.
func (l *Ledger) encoded() []byte {
	l.unpack.Do(func() {
		if l.read != nil {
			l.packed = l.read()
		}
	})
	return l.packed
}

// Ref returns the ref under which Refresh reports that the ledger of this issue changed.
func (l *Ledger) Ref() schemas.Ref { return ledgerRef(l.Issue) }

// LedgerPath returns the path of the ledger of an issue below the root.
func (s *Store) LedgerPath(issue int) string { return s.layout().ledgerPath(ledgerRef(issue).Name) }

func (l *layout) ledgerPath(name string) string {
	return l.state + "/" + ledgersFolder + "/" + name + ".json"
}

// LedgerIssue returns the issue of a ledger's Ref; ok is false for any other Ref.
func LedgerIssue(ref schemas.Ref) (issue int, ok bool) {
	if ref.Kind != LedgerKind {
		return 0, false
	}
	return ledgerIssue(ref.Name + ".json")
}

// sameLedger reports whether two ledgers are equal.
func sameLedger(a, b *Ledger) bool {
	return a == b || a != nil && b != nil && a.Path == b.Path && bytes.Equal(a.encoded(), b.encoded()) &&
		slices.Equal(a.Rejected, b.Rejected)
}

// Ledger returns the ledger of an issue, or nil.
func (t *Tree) Ledger(issue int) *Ledger {
	if i, ok := findLedger(t.ledgers, issue); ok {
		return t.ledgers[i]
	}
	return nil
}

// Ledgers returns the tree's ledgers, sorted by issue.
func (t *Tree) Ledgers() []*Ledger { return t.ledgers }

// LedgersSince yields the ledgers that differ from those of an earlier tree, by issue.
func (t *Tree) LedgersSince(was *Tree) iter.Seq[*Ledger] {
	return func(yield func(*Ledger) bool) {
		if len(was.ledgers) == len(t.ledgers) && (len(t.ledgers) == 0 || &was.ledgers[0] == &t.ledgers[0]) {
			return
		}
		for _, l := range t.ledgers {
			if was.Ledger(l.Issue) != l && !yield(l) {
				return
			}
		}
	}
}

// WithLedgers returns a tree in which the given ledgers replace those of the same issues.
func (t *Tree) WithLedgers(ledgers ...*Ledger) *Tree {
	if len(ledgers) == 0 {
		return t
	}
	next := *t
	next.ledgers = slices.Concat(t.ledgers, ledgers)
	slices.SortStableFunc(next.ledgers, func(a, b *Ledger) int { return cmp.Compare(a.Issue, b.Issue) })
	out := next.ledgers[:0]
	for i, l := range next.ledgers {
		if i+1 == len(next.ledgers) || next.ledgers[i+1].Issue != l.Issue {
			out = append(out, l)
		}
	}
	next.ledgers = slices.Clip(out)
	return &next
}

// withoutLedgers returns a tree without the ledgers of the given issues.
func (t *Tree) withoutLedgers(issues map[int]bool) *Tree {
	if len(issues) == 0 {
		return t
	}
	next := *t
	next.ledgers = slices.DeleteFunc(slices.Clone(t.ledgers), func(l *Ledger) bool { return issues[l.Issue] })
	return &next
}

func findLedger(ledgers []*Ledger, issue int) (int, bool) {
	return slices.BinarySearchFunc(ledgers, issue, func(l *Ledger, n int) int { return cmp.Compare(l.Issue, n) })
}

// diffLedgers returns the ledgers that differ between two trees.
func diffLedgers(prev, next *Tree) []schemas.Ref {
	var out []schemas.Ref
	for _, l := range next.ledgers {
		if !sameLedger(l, prev.Ledger(l.Issue)) {
			out = append(out, l.Ref())
		}
	}
	for _, l := range prev.ledgers {
		if next.Ledger(l.Issue) == nil {
			out = append(out, l.Ref())
		}
	}
	return out
}

// ledgers returns those of all usable ledger files, sorted by issue.
func (m *model) ledgers() []*Ledger {
	var out []*Ledger
	for _, f := range m.files {
		if l, ok := f.body.(*Ledger); ok {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(a, b *Ledger) int { return cmp.Compare(a.Issue, b.Issue) })
	return out
}

// ledger returns the content of a ledger's file, nil if it is missing or not usable.
func (m *model) ledger(ref schemas.Ref) *Ledger {
	f := m.files[m.layout.ledgerPath(ref.Name)]
	if f == nil {
		return nil
	}
	l, _ := f.body.(*Ledger)
	return l
}

// decodeLedgerFile decodes the content of a ledger file.
func decodeLedgerFile(p string, data []byte) any {
	l, err := ParseLedger(p, data)
	if err != nil {
		return damageOf(err)
	}
	return l
}

// noteLedgerWritten records the content that this process wrote into a ledger, so that Refresh does not report it as a
// change, and returns the body of the file.
func (s *Store) noteLedgerWritten(p string, data []byte) any {
	body := decodeLedgerFile(p, data)
	if l, ok := body.(*Ledger); ok {
		if s.folded == nil {
			s.folded = map[int]*Ledger{}
		}
		s.folded[l.Issue] = l
	}
	return body
}

// withFolded returns prev with the ledgers that this process wrote since.
func (s *Store) withFolded(prev *Tree) *Tree {
	if prev == nil || len(s.folded) == 0 {
		return prev
	}
	ledgers := make([]*Ledger, 0, len(s.folded))
	for _, l := range s.folded {
		ledgers = append(ledgers, l)
	}
	return prev.WithLedgers(ledgers...)
}

// ledgers updates the ledgers of the next tree, and returns those that differ or were moved aside.
func (u *update) ledgers(next *Tree) (*Tree, []schemas.Ref) {
	var changed []schemas.Ref
	var news []*Ledger
	gone := map[int]bool{}
	for ref := range u.touched {
		if ref.Kind != LedgerKind {
			continue
		}
		issue, _ := ledgerIssue(ref.Name + ".json")
		was, is := next.Ledger(issue), u.model.ledger(ref)
		if !sameLedger(was, is) || u.moved[ref] {
			changed = append(changed, ref)
		}
		if is != nil {
			news = append(news, is)
		} else {
			gone[issue] = true
		}
	}
	return next.WithLedgers(news...).withoutLedgers(gone), changed
}
