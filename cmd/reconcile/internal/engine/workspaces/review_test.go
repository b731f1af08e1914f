package workspaces

import (
	"fmt"
	"path/filepath"
	"testing"

	"reconcile.dev/reconcile/controllers/checks"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
)

// TestPlacesOfReviews: in a tree below the top of the repository, an agent names files from either, and the evidence from the tree.
func TestPlacesOfReviews(t *testing.T) {
	f := newFixture(t)
	f.write("sub/a.go", "one\ntwo\n")
	f.write("sub/b/c.go", "one\n")
	f.write("sub/sub/d.go", "one\n")
	f.git("add", ".")
	f.git("commit", "-qm", "more")
	commit := f.git("rev-parse", "HEAD")
	o := f.m.o
	o.Dir = filepath.Join(f.tree, "sub")
	below, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		m          *Manager
		file, want string // "": left out
	}{
		{below, "a.go", "a.go"}, {below, "sub/a.go", "a.go"}, {below, "./sub/b/c.go", "b/c.go"}, {below, "b/c.go", "b/c.go"},
		{below, "sub/sub/d.go", "sub/d.go"}, {below, "sub/d.go", "sub/d.go"}, {below, "file", "file"}, {below, "../file", "file"},
		{below, "none.go", ""}, {below, "../../file", ""}, {f.m, "sub/a.go", "sub/a.go"}, {f.m, "a.go", ""},
	} {
		run := &schemas.Run{Agent: "ann", Result: fmt.Appendf(nil, `{"findings":[{"file":%q,"line":1,"severity":"high","message":"m"}]}`, c.file)}
		e := c.m.evidence(run, &settle.Review{Commit: commit})
		switch got := e.Findings; {
		case c.want == "" && (len(got) > 0 || e.Outcome != checks.Unknown):
			t.Errorf("%s: %+v", c.file, e)
		case c.want != "" && (len(got) != 1 || got[0].File != c.want):
			t.Errorf("%s: want %s: %+v", c.file, c.want, e)
		}
	}
}
