package state

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"reconcile.dev/reconcile/schemas"
)

const manyRecords = 20

// unreadTree makes a tree of which nothing is known, with records of which one is damaged and one has no object.
func unreadTree(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	files := map[string]string{"specs/checks.yaml": dagYAML, "specs/health.yaml": sessionYAML,
		"state/runs/dags/checks/bad-0123456789abcdef-1.json": "{", "state/runs/dags/gone/bad-0123456789abcdef-1.json": "{"}
	for i := range manyRecords {
		key := fmt.Sprintf("dags/checks/build-0123456789abcdef-%d", i+1)
		b, err := EncodeRun(&schemas.Run{Key: key, Owner: "dag/checks", Node: "build", NodeKey: "sha256:01", Seq: i + 1,
			Outcome: schemas.OutcomeFailed, Agent: "engineer"})
		must(t, err)
		files["state/runs/"+key+".json"] = string(b)
	}
	put(t, dir, files)
	return dir
}

func openLeaving(t *testing.T, dir string) *Store {
	s := open(t, dir)
	s.deferFrom = 3
	return s
}

// TestRecordsAreReadWhenAskedFor compares what is asked for first with a tree of which all was read.
func TestRecordsAreReadWhenAskedFor(t *testing.T) {
	dir := unreadTree(t)
	for what, ask := range map[string]func(tree *Tree) string{
		"problems": func(tree *Tree) string { return fmt.Sprint(tree.Problems()) },
		"records":  func(tree *Tree) string { return fmt.Sprint(len(tree.Entry(checks).Runs())) },
		"count":    func(tree *Tree) string { return fmt.Sprint(tree.Entry(checks).RunCount()) },
		"traits": func(tree *Tree) string {
			return fmt.Sprint(tree.Entry(checks).RunsHave(OfAgent), tree.Entry(checks).RunsHave(Asks))
		},
		"all": dump,
	} {
		must(t, os.RemoveAll(filepath.Join(dir, localDir)))
		want := ask(load(t, open(t, dir)))
		must(t, os.RemoveAll(filepath.Join(dir, localDir)))
		must(t, os.RemoveAll(filepath.Join(dir, "state/runs/dags/gone")))
		s := openLeaving(t, dir)
		tree := load(t, s)
		if n := s.decoded.Load(); n != 2 {
			t.Errorf("%s: %d files were decoded, not just the two specs", what, n)
		}
		must(t, s.Close()) // the tree outlives the store
		if got := strings.ReplaceAll(ask(tree), "gone", ""); what != "problems" && what != "all" && got != want {
			t.Errorf("%s: %s\nwant %s", what, got, want)
		}
		put(t, dir, map[string]string{"state/runs/dags/gone/bad-0123456789abcdef-1.json": "{"})
		s = openLeaving(t, dir)
		if got := ask(load(t, s)); got != want {
			t.Errorf("%s: %s\nwant %s", what, got, want)
		}
	}
}

// TestCacheKnowsNoUnreadRecords has a second process look at what the first one left.
func TestCacheKnowsNoUnreadRecords(t *testing.T) {
	dir := unreadTree(t)
	want := dump(load(t, open(t, dir)))
	must(t, os.RemoveAll(filepath.Join(dir, localDir)))
	load(t, openLeaving(t, dir))
	settleFiles(t, dir)
	for _, s := range []*Store{openLeaving(t, dir), open(t, dir)} {
		if got := dump(load(t, s)); got != want {
			t.Errorf("%s\nwant %s", got, want)
		}
		if n := s.decoded.Load(); n != 0 {
			t.Errorf("%d files were decoded again", n)
		}
	}
}

// TestUnreadRecordsAreMovedAside repairs a tree of which the records were left unread.
func TestUnreadRecordsAreMovedAside(t *testing.T) {
	s := openLeaving(t, unreadTree(t))
	load(t, s)
	l, err := s.Lock(t.Context())
	must(t, err)
	defer l.Release()
	moved, err := s.MoveAside(t.Context(), func([]byte, int) []byte { return nil })
	must(t, err)
	if len(moved) != 2 {
		t.Errorf("moved %q", moved)
	}
}

// TestRefreshOfUnreadRecords changes, adds and removes records that were left unread.
func TestRefreshOfUnreadRecords(t *testing.T) {
	dir := unreadTree(t)
	s := openLeaving(t, dir)
	prev := load(t, s)
	const one = "state/runs/dags/checks/build-0123456789abcdef-1.json"
	must(t, os.Remove(filepath.Join(dir, one)))
	next, _ := refresh(t, s, prev, one)
	if got := next.Entry(checks).RunCount(); got != manyRecords-1 {
		t.Errorf("%d records", got)
	}
	if _, changed := refresh(t, s, next, one); len(changed) != 0 {
		t.Errorf("changed again: %v", changed)
	}
	if got, want := dump(next), dump(load(t, open(t, dir))); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// TestLoadChangedReadsAllRecords follows a Load that left them unread.
func TestLoadChangedReadsAllRecords(t *testing.T) {
	dir := unreadTree(t)
	must(t, os.RemoveAll(filepath.Join(dir, "state/runs/dags/gone"))) // to know whether it is gone, all are read
	s := openLeaving(t, dir)
	load(t, s)
	tree, _, _, err := s.LoadChanged(t.Context(), false)
	must(t, err)
	if n := s.decoded.Load(); tree.deferred != nil || n != 2+manyRecords+1 {
		t.Errorf("%d files were decoded", n)
	}
}
