package memory

import (
	"bytes"
	"fmt"
	"slices"

	"reconcile.dev/reconcile/schemas"
)

// SpliceParts returns the manifest with other entries for one issue, as [Manifest] would write it for all: the bytes are
// the concatenation of all parts, some of which are slices of the old manifest. It reads only a few of the other entries,
// so that a capture in a store of any size costs one copy at most. A manifest that does not have our form in the parts
// that are read is [ErrDamaged]: it must be rebuilt.
func SpliceParts(manifest []byte, issue int, entries []schemas.ObservationIndex) ([][]byte, error) {
	m, err := openManifest(manifest)
	if err != nil {
		return nil, err
	}
	from, err := m.search(issue)
	if err != nil {
		return nil, err
	}
	to, err := m.search(issue + 1)
	if err != nil {
		return nil, err
	}
	if !slices.IsSortedFunc(entries, compareEntries) {
		entries = slices.Clone(entries)
		slices.SortFunc(entries, compareEntries)
	}
	newest, err := m.newestWith(from, max(from, to), entries)
	if err != nil {
		return nil, err
	}
	before, after := bytes.TrimSuffix(m.body[:from], []byte(",")), m.body[max(from, to):]
	size := 0
	for i := range entries {
		size += 220 + len(entries[i].Summary) + len(entries[i].ID)
	}
	b := make([]byte, 0, size)
	if len(before) > 0 && len(entries) > 0 {
		b = append(b, ',')
	}
	b = appendEntries(b, entries)
	if len(before)+len(entries) > 0 && len(after) > 0 {
		b = append(b, ',')
	}
	return [][]byte{appendHead(nil, newest), before, b, after, appendTail(nil, len(before)+len(entries)+len(after))}, nil
}

// openedManifest is a manifest of our form.
type openedManifest struct {
	newest schemas.Stamp
	body   []byte // the entries: each begins with a line break, and all but the last one end in a comma
}

var errForm = fmt.Errorf("%w: it does not have the form in which it is written", ErrDamaged)

func openManifest(data []byte) (m openedManifest, err error) {
	rest, ok := bytes.CutPrefix(data, []byte(manifestHead))
	r := lineReader{rest: string(rest[:min(len(rest), 64)]), bad: !ok}
	m.newest = r.stamp()
	r.skip(manifestOpen)
	if r.bad {
		return m, errForm
	}
	rest = rest[min(len(rest), 64)-len(r.rest):]
	if string(rest) == manifestEmpty {
		return m, nil
	}
	m.body, ok = bytes.CutSuffix(rest, []byte("}"+manifestClose))
	if !ok || !bytes.HasPrefix(m.body, []byte("\n"+entryStart)) {
		return m, errForm
	}
	m.body = rest[:len(m.body)+1]
	return m, nil
}

// search returns the offset of the first entry of the issue, or of a higher one; the end without one.
func (m *openedManifest) search(issue int) (int, error) {
	low, high := 0, len(m.body) // entries that begin before low are of lower issues, at high or later not
	for low < high {
		at := low + (high-low)/2
		at = low + bytes.LastIndexByte(m.body[low:at+1], '\n') // the entry that at lies in
		n, ok := m.issueAt(at)
		switch {
		case !ok:
			return 0, errForm
		case n >= issue:
			high = at
		default:
			low = m.next(at)
		}
	}
	return low, nil
}

// next is where the entry after the one at a place begins.
func (m *openedManifest) next(at int) int {
	if n := bytes.IndexByte(m.body[at+1:], '\n'); n >= 0 {
		return at + 1 + n
	}
	return len(m.body)
}

// issueAt reads the issue of the entry at a place.
func (m *openedManifest) issueAt(at int) (issue int, ok bool) {
	line, ok := bytes.CutPrefix(m.body[at:m.next(at)], []byte("\n"+entryStart))
	end := bytes.IndexByte(line, '"')
	if !ok || end < 0 {
		return 0, false
	}
	_, issue, _, ok = ParseID(string(line[:end]))
	last := bytes.TrimSuffix(line, []byte(","))
	return issue, ok && bytes.HasSuffix(last, []byte("}")) && (len(last) < len(line)) == (m.next(at) < len(m.body))
}

// newestWith is the newest time of an entry once those from a place to another one are replaced by others.
func (m *openedManifest) newestWith(from, to int, entries []schemas.ObservationIndex) (newest schemas.Stamp, err error) {
	for i := range entries {
		newest = laterCapture(newest, entries[i].Timestamp)
	}
	if !newest.Before(m.newest.Time) {
		return newest, nil
	}
	gone, err := m.newestIn(from, to)
	if err != nil || gone.Before(m.newest.Time) {
		return laterCapture(newest, m.newest), err
	}
	before, err := m.newestIn(0, from)
	if err != nil {
		return newest, err
	}
	after, err := m.newestIn(to, len(m.body))
	return laterCapture(newest, laterCapture(before, after)), err
}

// newestIn returns the newest time of the entries between two offsets: it is at the end of each.
func (m *openedManifest) newestIn(from, to int) (newest schemas.Stamp, err error) {
	best := []byte(nil)
	for from < to {
		next := m.next(from)
		line := bytes.TrimSuffix(m.body[from:next], []byte(","))
		from = next
		if bytes.HasSuffix(line, []byte(":null}")) {
			continue
		}
		at := len(line) - len(stampForm) - 1
		if at < 1 || line[at-1] != ':' {
			return newest, errForm
		}
		if stamp := line[at : len(line)-1]; bytes.Compare(stamp, best) > 0 {
			best = stamp
		}
	}
	if best == nil {
		return newest, nil
	}
	r := lineReader{rest: string(best)}
	newest = r.stamp()
	if r.bad {
		return newest, errForm
	}
	return newest, nil
}
