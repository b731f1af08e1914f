package memory

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// The form of the manifest is that of state.Encode, except that each entry is one line: so a part can be replaced
// without reading the rest, and git merges it line by line.
const (
	manifestHead  = "{\n  \"version\": 1,\n  \"updatedAt\": "
	manifestOpen  = ",\n  \"entries\": ["
	manifestEmpty = "]\n}\n"
	manifestClose = "\n  ]\n}\n"
	entryStart    = "    {\"id\":\""
)

// Manifest writes the manifest of all entries, in any order. Its updatedAt is the newest time of an entry.
func Manifest(entries []schemas.ObservationIndex) []byte {
	if !slices.IsSortedFunc(entries, compareEntries) {
		entries = slices.Clone(entries)
		slices.SortFunc(entries, compareEntries)
	}
	size := 256
	var newest schemas.Stamp
	for i := range entries {
		size += 220 + len(entries[i].Summary) + len(entries[i].ID)
		newest = laterCapture(newest, entries[i].Timestamp)
	}
	b := appendHead(make([]byte, 0, size), newest)
	b = appendEntries(b, entries)
	return appendTail(b, len(entries))
}

func compareEntries(a, b schemas.ObservationIndex) int {
	if a.IssueNumber != b.IssueNumber {
		return a.IssueNumber - b.IssueNumber
	}
	if c := a.Timestamp.Compare(b.Timestamp.Time); c != 0 {
		return c
	}
	return strings.Compare(a.ID, b.ID)
}

func appendHead(b []byte, newest schemas.Stamp) []byte {
	return append(appendStamp(append(b, manifestHead...), newest), manifestOpen...)
}

func appendTail(b []byte, entries int) []byte {
	if entries == 0 {
		return append(b, manifestEmpty...)
	}
	return append(b, manifestClose...)
}

// appendEntries writes entries without a comma before the first or after the last one.
func appendEntries(b []byte, entries []schemas.ObservationIndex) []byte {
	for i := range entries {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendEntry(append(b, '\n'), &entries[i])
	}
	return b
}

func appendEntry(b []byte, e *schemas.ObservationIndex) []byte {
	b = schemas.AppendString(append(b, `    {"id":`...), e.ID)
	b = schemas.AppendString(append(b, `,"agent":`...), e.Agent)
	b = strconv.AppendInt(append(b, `,"issueNumber":`...), int64(e.IssueNumber), 10)
	b = schemas.AppendString(append(b, `,"category":`...), e.Category)
	b = schemas.AppendString(append(b, `,"summary":`...), e.Summary)
	b = strconv.AppendInt(append(b, `,"tokens":`...), int64(e.Tokens), 10)
	return append(appendStamp(append(b, `,"timestamp":`...), e.Timestamp), '}')
}

// ParseManifest parses the data of a memory manifest, in our form or as any other JSON. A truncated one is an error,
// and so is one with conflict markers; the errors are [ErrDamaged] and [ErrNewer]. Texts share the memory of one copy
// of data.
func ParseManifest(data []byte) (*schemas.MemoryManifest, error) {
	if m, ok := readManifest(string(data)); ok {
		return m, nil
	}
	m := new(schemas.MemoryManifest)
	if err := json.Unmarshal(bytes.TrimPrefix(data, []byte("\ufeff")), m); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if m.Version > schemas.MemoryVersion {
		return nil, fmt.Errorf("its version is %d: %w", m.Version, ErrNewer)
	}
	for i := range m.Entries {
		e := &m.Entries[i]
		if _, issue, _, ok := ParseID(e.ID); !ok || issue != e.IssueNumber {
			return nil, fmt.Errorf("%w: entry %d: %.150q is no id of issue %d", ErrDamaged, i+1, e.ID, e.IssueNumber)
		}
	}
	return m, nil
}

// readManifest reads a manifest of our form, line by line.
func readManifest(s string) (*schemas.MemoryManifest, bool) {
	rest, ok := strings.CutPrefix(s, manifestHead)
	if !ok {
		return nil, false
	}
	r := lineReader{rest: rest}
	m := &schemas.MemoryManifest{Version: schemas.MemoryVersion, UpdatedAt: r.stamp()}
	r.skip(manifestOpen)
	if r.rest == manifestEmpty {
		return m, !r.bad
	}
	body, whole := strings.CutSuffix(r.rest, manifestClose)
	if !whole {
		return nil, false
	}
	r.rest = body
	m.Entries = make([]schemas.ObservationIndex, 0, strings.Count(body, "\n"))
	for r.entry(m) {
		if r.rest == "" {
			return m, true
		}
		r.skip(",")
	}
	return nil, false
}

// lineReader reads JSON that this package wrote; anything else makes it bad.
type lineReader struct {
	rest string
	bad  bool
}

func (r *lineReader) skip(s string) {
	rest, ok := strings.CutPrefix(r.rest, s)
	r.rest, r.bad = rest, r.bad || !ok
}

func (r *lineReader) entry(m *schemas.MemoryManifest) bool {
	var e schemas.ObservationIndex
	r.skip("\n    {\"id\":")
	e.ID = r.text()
	r.skip(",\"agent\":")
	e.Agent = r.text()
	r.skip(",\"issueNumber\":")
	e.IssueNumber = r.number()
	r.skip(",\"category\":")
	e.Category = r.text()
	r.skip(",\"summary\":")
	e.Summary = r.text()
	r.skip(",\"tokens\":")
	e.Tokens = r.number()
	r.skip(",\"timestamp\":")
	e.Timestamp = r.stamp()
	r.skip("}")
	_, issue, _, ok := ParseID(e.ID)
	if r.bad || !ok || issue != e.IssueNumber {
		return false
	}
	m.Entries = append(m.Entries, e)
	return true
}

// text reads a text; one with escapes is decoded.
func (r *lineReader) text() (out string) {
	if r.bad || r.rest == "" || r.rest[0] != '"' {
		r.bad = true
		return ""
	}
	for i := 1; i < len(r.rest); i++ {
		switch c := r.rest[i]; {
		case c == '"':
			out, r.rest = r.rest[1:i], r.rest[i+1:]
			return out
		case c == '\\':
			return r.escaped()
		case c < ' ':
			r.bad = true
			return ""
		}
	}
	r.bad = true
	return ""
}

func (r *lineReader) escaped() (out string) {
	for i := 1; i < len(r.rest) && r.rest[i] >= ' '; i++ {
		switch r.rest[i] {
		case '\\':
			i++
		case '"':
			r.bad = json.Unmarshal([]byte(r.rest[:i+1]), &out) != nil
			r.rest = r.rest[i+1:]
			return out
		}
	}
	r.bad = true
	return ""
}

// number reads a number that is not negative.
func (r *lineReader) number() int {
	end := 0
	for end < len(r.rest) && '0' <= r.rest[end] && r.rest[end] <= '9' {
		end++
	}
	n, err := strconv.Atoi(r.rest[:end])
	r.bad = r.bad || err != nil || end > 1 && r.rest[0] == '0'
	r.rest = r.rest[end:]
	return n
}

// stampForm is the form of a written instant, in quotes; a 0 matches any digit.
const stampForm = `"0000-00-00T00:00:00.000Z"`

// stamp reads an instant of the form that is written.
func (r *lineReader) stamp() schemas.Stamp {
	if rest, ok := strings.CutPrefix(r.rest, "null"); ok {
		r.rest = rest
		return schemas.Stamp{}
	}
	if len(r.rest) < len(stampForm) {
		r.bad = true
		return schemas.Stamp{}
	}
	s := r.rest[:len(stampForm)]
	r.rest = r.rest[len(stampForm):]
	for i := range len(s) {
		if stampForm[i] == '0' && (s[i] < '0' || s[i] > '9') || stampForm[i] != '0' && s[i] != stampForm[i] {
			r.bad = true
			return schemas.Stamp{}
		}
	}
	n := func(from, to int) (n int) {
		for _, c := range []byte(s[from:to]) {
			n = n*10 + int(c-'0')
		}
		return n
	}
	t := time.Date(n(1, 5), time.Month(n(6, 8)), n(9, 11), n(12, 14), n(15, 17), n(18, 20), n(21, 24)*1e6, time.UTC)
	if t.Day() != n(9, 11) || t.Hour() != n(12, 14) || t.Minute() != n(15, 17) || t.Second() != n(18, 20) {
		r.bad = true
	}
	return schemas.Stamp{Time: t}
}

func appendStamp(b []byte, s schemas.Stamp) []byte {
	if s.IsZero() {
		return append(b, "null"...)
	}
	return append(append(append(b, '"'), s.String()...), '"')
}

// manifestDigits reads a number of at most that many digits.
func manifestDigits(s string, most int) (n int64, ok bool) {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int64(s[i]-'0')
		if i >= most {
			return 0, false
		}
	}
	return n, s != ""
}

// MergeManifests merges two manifests by the ids of their lines. The next run rebuilds the manifest from the files.
func MergeManifests(a, b []byte) ([]byte, error) {
	all := map[string]schemas.ObservationIndex{}
	for _, data := range [][]byte{a, b} {
		m, err := ParseManifest(data)
		if err != nil {
			return nil, err
		}
		for _, e := range m.Entries {
			if was, ok := all[e.ID]; !ok || bytes.Compare(appendEntry(nil, &e), appendEntry(nil, &was)) > 0 {
				all[e.ID] = e
			}
		}
	}
	return Manifest(slices.Collect(maps.Values(all))), nil
}
