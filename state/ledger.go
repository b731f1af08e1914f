package state

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"reconcile.dev/reconcile/schemas"
)

// LedgerKind is the Kind in the Refs of ledgers, as Ledger/issue-42. A ledger is no object: it has no entry.
const LedgerKind = "Ledger"

// Ledger is the ledger of one issue as it was read: state/clarifications/issue-<N>.json, which programs of other makes
// may write, too. It is immutable, and may be used by several goroutines.
type Ledger struct {
	Issue int    // 0: questions about no issue
	Last  int    // the highest sequence number that was given, also to records that were lost; 0 for none
	Open  int    // records that are neither resolved nor abandoned
	Path  string // below the root

	packed  []byte // the records, as encoder.ledger writes them
	decode  sync.Once
	records []schemas.Clarification
}

// ParseLedger reads the content of the ledger file at p. Fields that schemas does not name, and states of
// clarifications that it does not know, are accepted: a newer program, or another one, may have written them. Anything
// else that is not as it should be is an error, also a record with the number of another issue.
func ParseLedger(p string, data []byte) (*Ledger, error) {
	issue, ok := ledgerIssue(path.Base(p))
	if !ok {
		return nil, fmt.Errorf("%s is not named like a ledger, as issue-42.json", p)
	}
	l := &Ledger{Issue: issue, Path: p}
	records, last, err := decodeLedger(issue, data)
	if err != nil {
		return nil, err
	}
	if seq, err := sequence(issue, last); err == nil {
		l.Last = seq
	}
	for i := range records {
		seq, err := sequence(issue, records[i].ID)
		if err != nil {
			return nil, fmt.Errorf("record %d of %d: %w", i+1, len(records), err)
		}
		l.Last = max(l.Last, seq)
		if records[i].Open() {
			l.Open++
		}
	}
	e := encoder{b: make([]byte, 0, len(data)/2)}
	e.ledger(records)
	l.packed = bytes.Clone(e.b)
	return l, nil
}

// decodeLedger returns the records in the content of a ledger, and its [schemas.LedgerLastID], if that is a text. A list
// that is missing is not read as an empty one. The texts of the records are parts of data.
func decodeLedger(issue int, data []byte) (records []schemas.Clarification, last string, err error) {
	var l struct {
		IssueNumber    *int                     `json:"issueNumber"`
		Clarifications *[]schemas.Clarification `json:"clarifications"`
		LastID         any                      `json:"lastId"` // of whatever type: no other program has to know it
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

// sequence is the last part of an id: 1 for CLR-42-001.
func sequence(issue int, id string) (int, error) {
	rest, ok := strings.CutPrefix(id, "CLR-"+strconv.Itoa(issue)+"-")
	if !ok || !schemas.IsClarificationID(id) {
		return 0, fmt.Errorf("its id %q is not one of issue %d", id, issue)
	}
	return strconv.Atoi(rest)
}

// Records are all records, in the order of the file. They are decoded when they are first asked for. Callers must not
// change them.
func (l *Ledger) Records() []schemas.Clarification {
	l.decode.Do(func() {
		d := decoder{b: l.packed}
		l.records = d.clarifications()
	})
	return l.records
}

// Ref is what Refresh calls the ledger.
func (l *Ledger) Ref() schemas.Ref { return ledgerRef(l.Issue) }

func ledgerRef(issue int) schemas.Ref {
	return schemas.Ref{Kind: LedgerKind, Name: ledgerPrefix + strconv.Itoa(issue)}
}

const (
	ledgersFolder = "clarifications"
	ledgerPrefix  = "issue-"
)

// LedgerPath is the path of the ledger of an issue below the root.
func (s *Store) LedgerPath(issue int) string { return s.layout().ledgerPath(ledgerRef(issue).Name) }

func (l *layout) ledgerPath(name string) string {
	return l.state + "/" + ledgersFolder + "/" + name + ".json"
}

// ledgerIssue is the number in the name of a ledger file; ok is false for other files.
func ledgerIssue[S string | []byte](file S) (issue int, ok bool) {
	const least, most = len(ledgerPrefix + "0.json"), len(ledgerPrefix + "2147483647.json")
	if len(file) < least || len(file) > most || string(file[:len(ledgerPrefix)]) != ledgerPrefix {
		return 0, false
	}
	digits, ok := strings.CutSuffix(string(file[len(ledgerPrefix):]), ".json")
	n, err := strconv.ParseInt(digits, 10, 32)
	return int(n), ok && err == nil && strconv.FormatInt(n, 10) == digits && n >= 0
}

// LedgerIssue is the number of the issue that a ledger is about; ok is false for the Ref of anything else.
func LedgerIssue(ref schemas.Ref) (issue int, ok bool) {
	if ref.Kind != LedgerKind {
		return 0, false
	}
	return ledgerIssue(ref.Name + ".json")
}

// sameLedger reports whether two ledgers say the same.
func sameLedger(a, b *Ledger) bool {
	return a == b || a != nil && b != nil && a.Path == b.Path && bytes.Equal(a.packed, b.packed)
}

// Ledger returns the ledger of an issue, or nil.
func (t *Tree) Ledger(issue int) *Ledger {
	if i, ok := findLedger(t.ledgers, issue); ok {
		return t.ledgers[i]
	}
	return nil
}

// Ledgers returns all ledgers, sorted by issue.
func (t *Tree) Ledgers() []*Ledger { return t.ledgers }

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

// ledgers are those of all ledger files that can be used, sorted by issue.
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

// ledger is what the file of a ledger holds, nil when there is none that can be used.
func (m *model) ledger(ref schemas.Ref) *Ledger {
	f := m.files[m.layout.ledgerPath(ref.Name)]
	if f == nil {
		return nil
	}
	l, _ := f.body.(*Ledger)
	return l
}

// decodeLedgerFile makes the body of a ledger file of its content.
func decodeLedgerFile(p string, data []byte) any {
	l, err := ParseLedger(p, data)
	if err != nil {
		return damageOf(err)
	}
	return l
}

// wroteLedger notes what this process wrote into a ledger, which is no news to it, and returns the body of the file.
func (s *Store) wroteLedger(p string, data []byte) any {
	body := decodeLedgerFile(p, data)
	if l, ok := body.(*Ledger); ok {
		if s.folded == nil {
			s.folded = map[int]*Ledger{}
		}
		s.folded[l.Issue] = l
	}
	return body
}

// withFolded returns prev with the ledgers as this process wrote them since.
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

// ledgers brings the ledgers of the next tree up to date, and names those that differ or were moved aside.
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
