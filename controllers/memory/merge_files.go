package memory

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"reconcile.dev/reconcile/schemas"
)

// MergeFiles merges two diverged memory files a and b, of one issue or two archives of it: observations by id, captures
// and links by name, unknown fields of the file by name. Of two that differ the one that was verified last, or recalled
// more, is kept; the fold computes from specs and records what neither has. It is commutative, associative and
// idempotent, and the result is in canonical form. The errors are those of [Parse].
func MergeFiles(a, b []byte) ([]byte, error) {
	x, err := readAny(a)
	if err != nil {
		return nil, err
	}
	y, err := readAny(b)
	if err != nil {
		return nil, err
	}
	if x.IssueNumber != y.IssueNumber {
		return nil, fmt.Errorf("%w: one is of issue %d, the other of issue %d", ErrDamaged, x.IssueNumber, y.IssueNumber)
	}
	all := map[string]stored{}
	for _, s := range slices.Concat(x.entries, y.entries) {
		if was, ok := all[s.ID]; !ok || compareStored(&s, &was) > 0 {
			all[s.ID] = s
		}
	}
	x.entries = slices.Collect(maps.Values(all))
	x.Sources = greaterOf(x.Sources, y.Sources)
	x.Links = greaterOf(x.Links, y.Links)
	x.extra = greaterOf(x.extra, y.extra)
	x.UpdatedAt = later(x.UpdatedAt, y.UpdatedAt)
	x.finish()
	return x.encode(), nil
}

// readAny reads a file of whatever issue it says to be of. Unknown fields are without blanks: so they compare.
func readAny(data []byte) (*file, error) {
	m, _, err := parse(data)
	if err != nil {
		return nil, err
	}
	f, err := readFile(data, m.IssueNumber)
	if err != nil {
		return nil, err
	}
	f.extra = f.extra.compact()
	for i := range f.entries {
		f.entries[i].extra = f.entries[i].extra.compact()
	}
	return f, nil
}

// compact drops the blanks of the values, which are whole JSON.
func (x extras) compact() extras {
	for name, raw := range x {
		var b bytes.Buffer
		_ = json.Compact(&b, raw)
		x[name] = b.Bytes()
	}
	return x
}

func compareStored(a, b *stored) int {
	return cmp.Or(a.VerifiedAt.Compare(b.VerifiedAt.Time), cmp.Compare(a.RecallCount, b.RecallCount),
		cmp.Compare(a.SeenCount, b.SeenCount), bytes.Compare(a.text(), b.text()))
}

func (s *stored) text() []byte {
	var w jsonWriter
	w.observation(s)
	return w.b
}

// greaterOf unites two maps. Of two values of one name the one with the greater text stays.
func greaterOf[M ~map[string]V, V any](a, b M) M {
	out := maps.Clone(a)
	for name, v := range b {
		was, ok := out[name]
		if out == nil {
			out = M{}
		}
		if !ok || bytes.Compare(textOf(v), textOf(was)) > 0 {
			out[name] = v
		}
	}
	return out
}

// textOf is the JSON of a value that was read from JSON.
func textOf(v any) []byte {
	raw, _ := schemas.Marshal(v)
	return raw
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
