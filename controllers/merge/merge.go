// Package merge merges two versions of a file below state/ that diverged in git.
//
// Every merge is a join: with the common ancestor at the bottom, the two versions have a least upper bound. So merging
// is commutative, associative and idempotent, and the order in which branches are merged does not matter:
//
//   - what only one side changed is as that side has it, also where it removed it;
//   - maps are joined key by key, lists of things with a name by the name, conditions by their type;
//   - what belongs together and has a time (a node, a run, a condition, the stand of a DAG) is taken from one side as a
//     whole, from the later one; a question from the side that got further;
//   - histories, threads and ledgers are united, in the order of time;
//   - what was made and read on GitHub is united by key and by id: an id that one side knows is kept;
//   - of other values that both changed, the greater one stays: as good as the other, and the same everywhere.
//
// A merge does not decide what is right. Statuses and the memory derive from specs and records, each in its own file;
// the next run decides again and corrects what a merge could not know.
package merge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"reconcile.dev/reconcile/controllers/clarify"
	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// ErrNoJSON says that neither version can be read: there is nothing to merge.
var ErrNoJSON = errors.New("neither side is JSON")

// Files merges the versions a and b of a file with the common ancestor base; empty if one is missing. The kind of the
// file follows from its content. The result is in the canonical form of such files, unless the versions are the same
// already. A version that is not JSON (damaged, or with the conflict markers of another merge) is ignored; if both are,
// the error is ErrNoJSON.
func Files(kinds schemas.Kinds, base, a, b []byte) ([]byte, error) {
	x, okX := read(kinds, a)
	y, okY := read(kinds, b)
	switch {
	case !okX && !okY:
		return nil, ErrNoJSON
	case okX && okY && bytes.Equal(a, b):
		return a, nil
	case !okX || okY && x.class < y.class:
		x = y
	case !okY || y.class < x.class:
		y = x
	}
	o, ok := read(kinds, base)
	if !ok || o.class != x.class {
		o.data = nil
	}
	out, err := x.join(o.data, x.data, y.data)
	if err != nil {
		return nil, fmt.Errorf("merge a file of the class %q: %w", x.class, err)
	}
	return out, nil
}

// document is a version of a file that could be read.
type document struct {
	// class identifies the file: its kind, and its object. If the two sides differ in it, which no program of ours
	// causes, the one with the greater class is taken.
	class string
	data  []byte
	// join joins two versions of this class; base is nil if it does not exist.
	join func(base, a, b []byte) ([]byte, error)
}

// head are the fields that identify the kind of a file.
type head struct {
	Kind           string          `json:"kind"`
	Type           string          `json:"type"`
	IssueNumber    *int            `json:"issueNumber"`
	Clarifications json.RawMessage `json:"clarifications"`
	Observations   json.RawMessage `json:"observations"`
	Entries        json.RawMessage `json:"entries"`
	IDs            json.RawMessage `json:"ids"`
	Issue          *int            `json:"issue"`
	Repo           string          `json:"repo"`
	Object         string          `json:"object"`
	Comments       json.RawMessage `json:"comments"`
	Keys           []string        `json:"keys"`
}

// read parses a file; ok is false if it is not JSON. A file that does not match its class is read as a plain one.
func read(kinds schemas.Kinds, data []byte) (d document, ok bool) {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	if !utf8.Valid(data) || !json.Valid(data) || schemas.TooDeep(data) {
		return document{}, false
	}
	d = document{data: data, join: joinPlain}
	var h head
	if json.Unmarshal(data, &h) != nil {
		return d, true
	}
	class, join := classify(kinds, h, data)
	if join == nil {
		return d, true
	}
	return document{class: class, data: data, join: join}, true
}

// classify finds the class of a file, and tries whether it can be read as one of it.
func classify(kinds schemas.Kinds, h head, data []byte) (class string, join func(base, a, b []byte) ([]byte, error)) {
	switch {
	case h.Kind == "Run":
		class, join = "run", joinRuns
	case h.Kind == schemas.CheckpointName:
		class, join = "checkpoint", joinCheckpoints
	case h.Kind != "":
		class, join = "status", func(o, a, b []byte) ([]byte, error) { return joinStatuses(kinds, o, a, b) }
		if ref, _, err := state.DecodeStatus(kinds, data); err == nil {
			class += " " + ref.String()
		}
	case h.Clarifications != nil && h.IssueNumber != nil:
		class = "ledger " + strconv.Itoa(*h.IssueNumber)
		join = func(_, a, b []byte) ([]byte, error) { return clarify.Merge(a, b, *h.IssueNumber) }
	case h.Observations != nil && h.IssueNumber != nil:
		class = "memory " + strconv.Itoa(*h.IssueNumber)
		join = func(_, a, b []byte) ([]byte, error) { return memory.MergeFiles(a, b) }
	case h.Entries != nil:
		class, join = "manifest", func(_, a, b []byte) ([]byte, error) { return memory.MergeManifests(a, b) }
	case h.Type != "" && h.IDs != nil:
		class, join = "record", joinRecords
	case h.Comments != nil && h.Repo != "" && h.Issue != nil:
		class, join = fmt.Sprintf("mirror %s %d", h.Repo, *h.Issue), joinMirrors
	case h.Object != "" && h.Repo != "":
		class, join = "mirror "+h.Repo+" "+h.Object, joinMirrorObjects
	case h.Keys != nil:
		class, join = "keys", joinMirrorKeys
	default:
		return "", nil
	}
	if _, err := join(nil, data, data); err != nil {
		return "", nil
	}
	return class, join
}

// compact drops the blanks of a value.
func compact(raw []byte) []byte {
	var b bytes.Buffer
	_ = json.Compact(&b, raw) // it is whole
	return b.Bytes()
}

// text is the canonical JSON of a value that was decoded, which always marshals.
func text(v any) []byte {
	b, _ := state.Encode(v)
	return b
}

// whole joins files that are units.
func whole(base, a, b []byte, read func([]byte) (unit, error)) ([]byte, error) {
	var units [3]unit
	for i, data := range [][]byte{base, a, b} {
		if data == nil {
			continue
		}
		var err error
		if units[i], err = read(data); err != nil {
			return nil, err
		}
	}
	if secondUnit(units[0], units[1], units[2]) {
		return units[2].text, nil
	}
	return units[1].text, nil
}

// joinRuns joins records of one run: they are never changed, so at most one of two that differ is a later one.
func joinRuns(base, a, b []byte) ([]byte, error) {
	return whole(base, a, b, func(data []byte) (unit, error) {
		r, err := state.DecodeRun(data)
		if err != nil {
			return unit{}, err
		}
		text, err := state.EncodeRun(r)
		return unit{r.FinishedAt.Time, text}, err
	})
}

// joinCheckpoints joins checkpoints, which are never changed either. Of two with different causes the later one stays; the other
// is derived again from its record, under the next number.
func joinCheckpoints(base, a, b []byte) ([]byte, error) {
	return whole(base, a, b, func(data []byte) (unit, error) {
		c, err := state.DecodeCheckpoint(data)
		if err != nil {
			return unit{}, err
		}
		text, err := state.EncodeCheckpoint(c)
		return unit{c.Timestamp.Time, text}, err
	})
}

// joinRecords joins records of the memory, which are never changed either.
func joinRecords(base, a, b []byte) ([]byte, error) {
	return whole(base, a, b, func(data []byte) (unit, error) {
		r, err := memory.ParseRecord(data)
		if err != nil {
			return unit{}, err
		}
		text, err := state.Encode(r)
		return unit{schemas.NewTime(r.At.Time).Time, text}, err
	})
}

// unit is a value that is taken from one side as a whole. The zero unit, without text, represents a missing value.
type unit struct {
	at   time.Time // zero where it has no time
	text []byte    // canonical; equal units have equal texts
}

func (u unit) same(v unit) bool { return bytes.Equal(u.text, v.text) }

// compare orders units: missing ones first, then by time, then by text.
func (u unit) compare(v unit) int {
	if len(u.text) == 0 || len(v.text) == 0 {
		return len(u.text) - len(v.text)
	}
	if c := u.at.Compare(v.at); c != 0 {
		return c
	}
	return bytes.Compare(u.text, v.text)
}

// secondUnit reports whether of two units with a common ancestor the second is taken: what changed over what did not, else
// the greater. Both being the same, it does not matter.
func secondUnit(base, a, b unit) bool { return pickUnit(base, a, b, unit.compare) }

// pickUnit is second by another order.
func pickUnit(base, a, b unit, compare func(a, b unit) int) bool {
	switch {
	case a.same(b) || b.same(base):
		return false
	case a.same(base):
		return true
	}
	return compare(b, a) > 0
}

// unitAhead reports whether a time is one to come, or that of something begun: it does not tell how late something is known.
func unitAhead(field string) bool {
	return field == "RetryAt" || field == "StaleAfter" || field == "Intended"
}
