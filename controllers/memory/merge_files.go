package memory

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
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
	x.UpdatedAt = laterCapture(x.UpdatedAt, y.UpdatedAt)
	x.finish()
	return x.encode(), nil
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

func sameLinks(a, b schemas.MemoryLinks) bool {
	return slices.Equal(a.Repeats, b.Repeats) &&
		(len(a.Supersedes) == 0 && len(b.Supersedes) == 0 || reflect.DeepEqual(a.Supersedes, b.Supersedes))
}

func unionOfLists(set map[string]bool, more ...string) map[string]bool {
	if set == nil {
		set = make(map[string]bool, len(more))
	}
	for _, m := range more {
		set[m] = true
	}
	return set
}
