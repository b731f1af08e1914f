package state

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
)

// memoryFiles are those that Refresh tells of, by their Refs.
var memoryFiles = map[string]string{
	"Memory/issue-42":                  "state/memory/issue-42.json",
	"Memory/manifest":                  "state/memory/manifest.json",
	"Memory/records/removed-42-1-abcd": "state/memory/records/removed-42-1-abcd.json",
	"Memory/archive/issue-42-archived": "state/memory/archive/issue-42-archived.json",
}

func lookAgain(t *testing.T, s *Store, prev *Tree, hints ...string) (*Tree, []string) {
	t.Helper()
	next, refs, err := s.Refresh(t.Context(), prev, append([]string{}, hints...))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range refs {
		names = append(names, r.Kind+"/"+r.Name)
	}
	return next, names
}

func TestRefreshTellsOfTheMemory(t *testing.T) {
	for name, p := range memoryFiles {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, map[string]string{"state/memory/issue-1.json": "{}"})
			s := open(t, dir)
			tree := load(t, s)
			for _, content := range []string{"{}", `{"version": 1}`, ""} {
				if content == "" {
					if err := os.Remove(filepath.Join(dir, p)); err != nil {
						t.Fatal(err)
					}
				} else {
					put(t, dir, map[string]string{p: content})
				}
				var changed []string
				if tree, changed = lookAgain(t, s, tree, p); !slices.Equal(changed, []string{name}) {
					t.Errorf("with %q in it, Refresh names %q", content, changed)
				}
				if tree, changed = lookAgain(t, s, tree, p); len(changed) > 0 {
					t.Errorf("once more it names %q", changed)
				}
			}
			if tree.Len() != 0 || len(tree.Problems()) != 0 {
				t.Errorf("the tree has %d entries, problems %v", tree.Len(), tree.Problems())
			}
		})
	}
}

// TestFreshSeesTheMemory checks that each file of the memory is part of the fingerprint, and its locks are not.
func TestFreshSeesTheMemory(t *testing.T) {
	for name, p := range memoryFiles {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, map[string]string{p: "{}"})
			s := open(t, dir)
			load(t, s)
			if err := s.Settle(Summary{}); err != nil {
				t.Fatal(err)
			}
			put(t, dir, map[string]string{p + ".lock": "{}"})
			if _, fresh := open(t, dir).Fresh(); !fresh {
				t.Error("a lock beside it is taken for a change")
			}
			put(t, dir, map[string]string{p: `{"version": 1}`})
			if _, fresh := open(t, dir).Fresh(); fresh {
				t.Error("its change goes unnoticed")
			}
		})
	}
}

// TestRefreshMemory checks that what this process wrote is no news, that the fingerprint holds, and that what others
// write afterwards is told.
func TestRefreshMemory(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"state/memory/issue-1.json": "{}", "state/memory/records/a.json": "{}"})
	s := open(t, dir)
	tree := load(t, s)
	put(t, dir, map[string]string{"state/memory/issue-1.json": "[1]", "state/memory/archive/issue-1-archived.json": "{}"})
	if err := os.Remove(filepath.Join(dir, "state/memory/records/a.json")); err != nil {
		t.Fatal(err)
	}
	if err := s.RefreshMemory(); err != nil {
		t.Fatal(err)
	}
	tree, changed := refreshAll(t, s, tree)
	if len(changed) > 0 {
		t.Errorf("own writes are told as %v", changed)
	}
	if err := s.Settle(Summary{}); err != nil {
		t.Fatal(err)
	}
	if _, fresh := open(t, dir).Fresh(); !fresh {
		t.Error("the fingerprint does not hold")
	}
	put(t, dir, map[string]string{"state/memory/issue-1.json": "[1, 2]"})
	if _, changed = refreshAll(t, s, tree); !slices.Equal(changed, []schemas.Ref{{Kind: MemoryKind, Name: "issue-1"}}) {
		t.Errorf("a foreign write is told as %v", changed)
	}
}

func refreshAll(t *testing.T, s *Store, prev *Tree) (*Tree, []schemas.Ref) {
	t.Helper()
	next, refs, err := s.Refresh(t.Context(), prev, nil)
	if err != nil {
		t.Fatal(err)
	}
	return next, refs
}

func TestSweepMemory(t *testing.T) {
	dir := t.TempDir()
	lock := "state/memory/issue-42.json.lock"
	put(t, dir, map[string]string{"state/memory/issue-42.json": "{}",
		lock: `{"pid":999999,"timestamp":"2001-01-01T00:00:00Z","agent":"a"}`})
	s := open(t, dir)
	if !s.HasMemory() {
		t.Error("the memory is not found")
	}
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(filepath.Join(dir, lock), old, old); err != nil {
		t.Fatal(err)
	}
	if err := s.SweepMemory(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, lock)); !os.IsNotExist(err) {
		t.Errorf("the lock of a process that died is still there: %v", err)
	}
}
