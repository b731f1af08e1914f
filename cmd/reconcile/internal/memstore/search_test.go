package memstore_test

import (
	"testing"
	"testing/synctest"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/schemas"
)

// TestSearchShowsWhatChanged repeats a search: what it shows of an observation stays, but whether that may be stale is
// looked into anew a second later.
func TestSearchShowsWhatChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := newTree(t)
		x.write("src/a.go", []byte("one"))
		s := spec("engineer", 1, noon, "Parsing is in a.go", "Printing will be in b.go")
		s.Entries[0].Anchors, s.Entries[0].Digests = []string{"src/a.go"}, map[string]string{"src/a.go": x.Digest("src/a.go")}
		s.Entries[1].Anchors, s.Entries[1].Digests = []string{"src/b.go"}, map[string]string{"src/b.go": schemas.AnchorAbsent}
		x.capture(s)
		for _, step := range []struct {
			path, content     string
			parsing, printing string
		}{
			{"src/c.go", "one", "", ""},
			{"src/a.go", "two", "src/a.go changed since", ""},
			{"src/b.go", "one", "src/a.go changed since", "src/b.go exists since"},
			{"src/a.go", "one", "", "src/b.go exists since"},
		} {
			x.write(step.path, []byte(step.content))
			time.Sleep(2 * time.Second) // of the bubble's clock
			for range 2 {
				for text, want := range map[string]string{"parsing": step.parsing, "printing": step.printing} {
					rows, err := x.Search(t.Context(), memstore.Query{Text: text})
					if err != nil || len(rows) != 1 {
						t.Fatalf("%s: %d rows, %v", text, len(rows), err)
					}
					if rows[0].Stale != want || rows[0].Score <= 0 || rows[0].Agent != "engineer" {
						t.Errorf("%s, %s is %q: %+v, want stale %q", text, step.path, step.content, rows[0], want)
					}
				}
			}
		}
	})
}
