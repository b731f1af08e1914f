package clarify

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	quick "github.com/segmentio/encoding/json"
	"reconcile.dev/reconcile/schemas"
)

// ledgerFile is a ledger with all its content, including unknown fields.
type ledgerFile struct {
	issue   int
	records []ledgerRecord
	extra   extras
	byID    map[string][]int // places among records
	byName  map[string]int   // the last record of each request
}

// ledgerRecord is a record of a ledger. Clarification has its known fields. Unknown ones are parsed only when the record is
// to change.
type ledgerRecord struct {
	schemas.Clarification
	raw     json.RawMessage // the bytes in the file; nil: it was changed
	gone    bool            // taken up by another record
	bad     bool            // it cannot be used, and stays as it stands: only ID and Request are known, if they are texts
	extra   extras
	entries []extras // unknown fields of the turns, by their place in Thread
}

// extras are unknown fields.
type extras map[string]json.RawMessage

// The names of the fields that the specification knows (agentx-spec 4.2), and request (decision 9).
var (
	fileFields   = []string{"issueNumber", "clarifications"}
	recordFields = []string{"id", "from", "to", "topic", "blocking", "status", "round", "maxRounds", "created",
		"staleAfter", "resolvedAt", "thread", "request"}
	turnFields = []string{"round", "from", "type", "body", "timestamp"}
)

// readFile reads a ledger. Fields that are left out are zero. A record that cannot be used is bad.
func readFile(data []byte, issue int) (*ledgerFile, error) {
	var head struct {
		IssueNumber    *int              `json:"issueNumber"`
		Clarifications []json.RawMessage `json:"clarifications"`
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // some programs mark UTF-8 so; loading takes it, too
	if !json.Valid(data) {
		return nil, fmt.Errorf("%w: it is no whole JSON value", ErrNoLedger)
	}
	if err := quick.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoLedger, err)
	}
	if head.IssueNumber == nil || *head.IssueNumber != issue {
		return nil, fmt.Errorf("%w: its issueNumber is not %d", ErrNoLedger, issue)
	}
	f := &ledgerFile{issue: issue, records: make([]ledgerRecord, len(head.Clarifications))}
	var err error
	if f.extra, err = unknownFields(data, fileFields); err != nil {
		return nil, err
	}
	for i, raw := range head.Clarifications {
		f.records[i] = parseRecord(raw, issue)
	}
	return f, nil
}

// parseRecord reads one record of the ledger of an issue.
func parseRecord(raw json.RawMessage, issue int) ledgerRecord {
	r := ledgerRecord{raw: raw}
	err := quick.Unmarshal(raw, &r.Clarification)
	if of, _, ok := ParseID(r.ID); err == nil && ok && of == issue {
		return r
	}
	var head struct{ ID, Request string }
	if quick.Unmarshal(raw, &head) != nil {
		head.ID, head.Request = "", ""
	}
	return ledgerRecord{raw: raw, bad: true, Clarification: schemas.Clarification{ID: head.ID, Request: head.Request}}
}

// index makes the records found by their ids and names.
func (f *ledgerFile) index() {
	f.byID, f.byName = make(map[string][]int, len(f.records)), make(map[string]int, len(f.records))
	for i := range f.records {
		f.note(i)
	}
}

func (f *ledgerFile) note(i int) {
	r := &f.records[i]
	if r.bad && r.Request == "" {
		return // of another program: it blocks no id
	}
	if !slices.Contains(f.byID[r.ID], i) {
		f.byID[r.ID] = append(f.byID[r.ID], i)
	}
	if r.Request != "" {
		f.byName[r.Request] = i
	}
}

// thaw parses the unknown fields of a record, so that it can be changed.
func (r *ledgerRecord) thaw() (err error) {
	if r.raw == nil {
		return nil
	}
	var inner struct {
		Thread []json.RawMessage `json:"thread"`
	}
	if r.extra, err = unknownFields(r.raw, recordFields); err != nil {
		return err
	}
	if err := quick.Unmarshal(r.raw, &inner); err != nil && !r.bad {
		return fmt.Errorf("%w: %w", ErrNoLedger, err)
	} else if r.bad {
		inner.Thread = nil // it is written again
	}
	r.entries = make([]extras, len(inner.Thread))
	for i, t := range inner.Thread {
		if r.entries[i], err = unknownFields(t, turnFields); err != nil {
			return err
		}
	}
	r.raw = nil
	return nil
}

// unknownFields returns the fields of an object that are not among those known, in any case of letters (encoding/json reads
// them so); nil for none.
func unknownFields(raw []byte, known []string) (extras, error) {
	var all extras
	if err := quick.Unmarshal(raw, &all); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoLedger, err)
	}
	maps.DeleteFunc(all, func(name string, _ json.RawMessage) bool {
		return slices.ContainsFunc(known, func(k string) bool { return strings.EqualFold(k, name) })
	})
	if len(all) == 0 {
		return nil, nil
	}
	return all, nil
}

// same reports whether the record says what c says.
func (r *ledgerRecord) same(c *schemas.Clarification) bool {
	return r.ID == c.ID && r.Request == c.Request && r.From == c.From && r.To == c.To && r.Topic == c.Topic &&
		r.Blocking == c.Blocking && r.Status == c.Status && r.Round == c.Round && r.MaxRounds == c.MaxRounds &&
		r.Created.Equal(c.Created.Time) && r.StaleAfter.Equal(c.StaleAfter.Time) &&
		r.ResolvedAt.Equal(c.ResolvedAt.Time) && slices.EqualFunc(r.Thread, c.Thread, sameTurnAndTime)
}

// set makes the record say what c says. Unknown fields stay, those of a turn with the turn.
func (r *ledgerRecord) set(c *schemas.Clarification) error {
	if err := r.thaw(); err != nil {
		return err
	}
	entries := make([]extras, len(c.Thread))
	taken := make([]bool, len(r.Thread))
	for i := range c.Thread {
		for j := range r.Thread {
			if !taken[j] && sameTurn(c.Thread[i], r.Thread[j]) {
				taken[j], entries[i] = true, r.entries[j]
				break
			}
		}
	}
	r.Clarification, r.entries, r.bad = *c, entries, false
	return nil
}

// sort orders the records by their numbers; those without one are last, removed ones are dropped.
func (f *ledgerFile) sort() {
	f.records = slices.DeleteFunc(f.records, func(r ledgerRecord) bool { return r.gone })
	slices.SortStableFunc(f.records, func(a, b ledgerRecord) int { return compareRecords(&a, &b) })
}

// encode writes the file: fields in the order of the specification, then unknown ones by name, indented by two spaces,
// a newline at the end. Records that were not changed stay as they are, byte for byte.
func (f *ledgerFile) encode() ([]byte, error) {
	b := fmt.Appendf(nil, "{\n  \"issueNumber\": %d,\n  \"clarifications\": [", f.issue)
	for i := range f.records {
		b = append(b, ",\n    "[min(i, 1)^1:]...)
		var err error
		if b, err = f.records[i].append(b); err != nil {
			return nil, err
		}
	}
	if len(f.records) > 0 {
		b = append(b, "\n  "...)
	}
	b = append(b, ']')
	for _, name := range slices.Sorted(maps.Keys(f.extra)) {
		b = appendQuoted(append(b, ",\n  "...), name)
		var err error
		if b, err = appendIndented(append(b, ": "...), f.extra[name], "  "); err != nil {
			return nil, err
		}
	}
	return append(b, "\n}\n"...), nil
}

func appendIndented(b []byte, raw []byte, prefix string) ([]byte, error) {
	out := bytes.NewBuffer(b)
	if err := json.Indent(out, raw, prefix, "  "); err != nil {
		return nil, fmt.Errorf("write a ledger: %w", err)
	}
	return out.Bytes(), nil
}

func (r *ledgerRecord) append(b []byte) ([]byte, error) {
	if r.raw != nil {
		return append(b, r.raw...), nil
	}
	c := r.Clarification
	c.Thread = nil
	head, err := schemas.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("write %s: %w", r.ID, err)
	}
	before, after, _ := bytes.Cut(head, []byte(`"thread":null`)) // a text cannot hold the quotes
	flat := append(slices.Clone(before), `"thread":[`...)
	for i, t := range r.Thread {
		turn, err := schemas.Marshal(t)
		if err != nil {
			return nil, fmt.Errorf("write a turn of %s: %w", r.ID, err)
		}
		flat = append(flat, ","[min(i, 1)^1:]...)
		flat = append(flat, r.entries[i].into(turn)...)
	}
	flat = append(append(flat, ']'), after...)
	return appendIndented(b, r.extra.into(flat), "    ")
}

// into adds the fields to an object that is the end of b, sorted by name.
func (x extras) into(b []byte) []byte {
	for _, name := range slices.Sorted(maps.Keys(x)) {
		b = append(b[:len(b)-1], ',')
		b = appendQuoted(b, name)
		b = append(append(append(b, ':'), x[name]...), '}')
	}
	return b
}

func appendQuoted(b []byte, s string) []byte {
	q, _ := schemas.Marshal(s) // text always marshals
	return append(b, q...)
}

// put merges one record into the file, and reports whether that changed anything.
func (f *ledgerFile) put(c *schemas.Clarification) (changed bool, err error) {
	i, err := f.place(c)
	if err != nil {
		return false, err
	}
	if i < 0 {
		i = len(f.records)
		f.records = append(f.records, ledgerRecord{})
		err = f.records[i].set(c)
		f.note(i)
		return true, err
	}
	r := &f.records[i]
	if len(foreignTurns(r.Thread, c.Thread)) > 0 || foldAhead(&r.Clarification, c.Status, c.Round) {
		return false, ErrStale
	}
	if !r.same(c) {
		changed, err = true, r.set(c)
		f.note(i) // its id may be another one now
	}
	return f.dropCopies(i) || changed, err
}

// place finds the record of c: its index, or -1 where c is new.
func (f *ledgerFile) place(c *schemas.Clarification) (int, error) {
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

// sameTurn reports whether two turns are one. Their times may differ: a turn keeps the time at which it was first
// written.
func sameTurn(a, b schemas.ClarificationTurn) bool {
	return a.Round == b.Round && a.Type == b.Type && a.From == b.From && a.Body == b.Body
}

// plain is the text of a bad record in canonical form.
func (r *ledgerRecord) plain() (json.RawMessage, error) {
	flat, err := compactJSON(r.raw)
	if err != nil {
		return nil, err
	}
	return appendIndented(nil, flat, "    ")
}

func compactJSON(raw json.RawMessage) ([]byte, error) {
	var b bytes.Buffer
	if len(raw) == 0 {
		return nil, nil
	}
	if err := json.Compact(&b, raw); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNoLedger, err)
	}
	return b.Bytes(), nil
}

// forgetLast drops the highest assigned number, once a record has it or a higher one.
func (f *ledgerFile) forgetLast() {
	last := lastSeq(f.extra[schemas.LedgerLastID], f.issue)
	for i := range f.records {
		if LastSeq(f.issue, f.records[i].ID) >= last {
			delete(f.extra, schemas.LedgerLastID)
			return
		}
	}
}

// soundRecord reports whether a value can be part of a ledger that must be readable.
func soundRecord(raw []byte) bool {
	return utf8.Valid(raw) && !bytes.Contains(raw, []byte("\n<<<<<<< "))
}
