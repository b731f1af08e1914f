package memstore_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
)

// TestCompactedIsFoundAsBefore: each of many known items is found after a compaction where it was before, also by a process
// that has the archives from the cache; what is removed of it is not.
func TestCompactedIsFoundAsBefore(t *testing.T) {
	x := newTree(t)
	var ids []string
	for i := range 60 {
		text := fmt.Sprintf("Item%c%c of the store turned out to need a lock of its own. ", 'a'+i%26, 'a'+i/26) +
			strings.Repeat("It was weighed with care. ", 10+i) // no two rank equal
		ids = append(ids, x.capture(spec("engineer", 1+i%3, noon, text)).Observations[0].ID)
	}
	found := func(x *tree, i int) []string {
		rows, err := x.Search(t.Context(), memstore.Query{Text: fmt.Sprintf("item%c%c store lock", 'a'+i%26, 'a'+i/26)})
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, r := range rows {
			out = append(out, r.ID)
		}
		return out
	}
	before := make([][]string, len(ids))
	for i := range ids {
		if before[i] = found(x, i); before[i][0] != ids[i] {
			t.Fatalf("item %d is not first before the compaction: %q", i, before[i])
		}
	}
	for issue := 1; issue <= 3; issue++ {
		if _, err := x.Compact(t.Context(), issue); err != nil {
			t.Fatal(err)
		}
	}
	for _, y := range []*tree{x, openTree(t, x.dir), openTree(t, x.dir)} {
		for i := range ids {
			if got := found(y, i); !slices.Equal(got, before[i]) {
				t.Errorf("item %d: %q, before the compaction %q", i, got, before[i])
			}
		}
	}
	all, err := x.ByIssue(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	var merged []string
	for _, o := range all {
		merged = append(merged, o.ID)
	}
	if err := x.Remove(t.Context(), merged, "me", "wrong"); err != nil {
		t.Fatal(err)
	}
	if got := found(x, 0); slices.Contains(got, ids[0]) {
		t.Errorf("what was removed is found: %q", got)
	}
}
