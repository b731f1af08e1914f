package state

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/mutants"
)

// TestRefreshChangedIsLoad makes random edits to a small tree and checks that what the system told of them leads to the
// same tree as a Load from nothing, and that exactly the objects that differ are named.
func TestRefreshChangedIsLoad(t *testing.T) {
	for seed := range uint64(mutants.Size(2, 6, 6)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := &walker{T: t, dir: t.TempDir(), rand: rand.New(rand.NewPCG(seed, 2))}
			for range 10 {
				w.edit()
			}
			w.store = open(t, w.dir)
			w.store.Watch()
			tree := load(t, w.store)
			for step := range 80 {
				for range 1 + w.rand.IntN(3) {
					w.edit()
				}
				if w.rand.IntN(8) == 0 {
					var err error
					if tree, _, err = w.store.Refresh(t.Context(), tree, []string{"specs/a.yaml"}); err != nil {
						t.Fatal(err)
					}
				}
				next, refs, err := w.store.RefreshChanged(t.Context(), tree)
				if err != nil {
					t.Fatal(err)
				}
				w.compare(step, nil, next)
				if want := diffModels(tree, next); !slices.Equal(refs, want) {
					t.Fatalf("step %d: RefreshChanged names %v, different are %v", step, refs, want)
				}
				tree = next
			}
		})
	}
}

// aside is a file with two names, of which one is watched. What is written through the other is not told of: it shows
// whether every file was looked at.
func aside(t *testing.T, dir, p string) (write func(text string)) {
	t.Helper()
	other := filepath.Join(t.TempDir(), "other")
	must(t, os.Link(filepath.Join(dir, p), other))
	return func(text string) { must(t, os.WriteFile(other, []byte(text), 0o644)) }
}

// title is that of the session health.
func title(t *testing.T, tree *Tree) string {
	t.Helper()
	if e := tree.Entry(health); e != nil && e.Object != nil {
		return string(e.Object.Canonical())
	}
	return ""
}

func session(name string) schemas.Ref { return schemas.Ref{Kind: health.Kind, Name: name} }

func changed(t *testing.T, s *Store, prev *Tree) *Tree {
	t.Helper()
	next, _, err := s.RefreshChanged(t.Context(), prev)
	must(t, err)
	return next
}

func TestRefreshChangedLooksAtWhatItIsToldOf(t *testing.T) {
	spec := func(name string) string { return strings.ReplaceAll(sessionYAML, "health", name) }
	status := func(name, phase string) map[string]string {
		return map[string]string{"state/sessions/" + name + ".json": strings.ReplaceAll(string(statusOf(t, health, phase)), "health", name)}
	}
	for _, c := range []struct {
		name   string
		change func(t *testing.T, dir string, s *Store)
		whole  bool // every file is looked at
	}{
		{"nothing", func(*testing.T, string, *Store) {}, false},
		{"a spec", func(t *testing.T, dir string, _ *Store) { put(t, dir, map[string]string{"specs/b.yaml": spec("b")}) }, false},
		{"a spec that is replaced", func(t *testing.T, dir string, _ *Store) {
			put(t, dir, map[string]string{"new": spec("c")})
			must(t, os.Rename(filepath.Join(dir, "new"), filepath.Join(dir, "specs/c.yaml")))
		}, false},
		{"what editors leave", func(t *testing.T, dir string, _ *Store) {
			put(t, dir, map[string]string{"specs/.health.yaml.swp": "x", "specs/4913": ""})
			must(t, os.Remove(filepath.Join(dir, "specs/4913")))
		}, false},
		{"a status that another program replaces", func(t *testing.T, dir string, _ *Store) {
			must(t, os.Remove(filepath.Join(dir, "state/sessions/health.json"))) // as git does
			put(t, dir, status("health", "Paused"))
		}, true},
		{"a status that another program writes in place", func(t *testing.T, dir string, _ *Store) { put(t, dir, status("health", "Paused")) }, false},
		{"a status that this process writes", func(t *testing.T, _ string, s *Store) {
			locked(t, s, func() {
				write(t, s, Change{Path: "state/sessions/health.json", Data: []byte(status("health", "Failed")["state/sessions/health.json"])})
			})
		}, false},
		{"a folder", func(t *testing.T, dir string, _ *Store) {
			put(t, dir, map[string]string{"specs/deep/d.yaml": spec("d")})
		}, true},
		{"records of another program", func(t *testing.T, dir string, _ *Store) {
			put(t, dir, map[string]string{"state/runs/dags/other/build-1.json": "{}"})
		}, true},
		{"more than the queue takes", func(t *testing.T, dir string, _ *Store) {
			one, other := filepath.Join(dir, "specs/health.yaml~"), filepath.Join(dir, "specs/other~")
			must(t, os.WriteFile(one, nil, 0o644))
			for range 5_000 { // four events each
				must(t, os.Rename(one, other))
				must(t, os.Rename(other, one))
			}
		}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			put(t, dir, map[string]string{"specs/health.yaml": sessionYAML, "state/runs/dags/checks/build-1.json": "{}"})
			put(t, dir, status("health", "Active"))
			behind := aside(t, dir, "specs/health.yaml")
			s := open(t, dir)
			s.Watch()
			tree := load(t, s)
			behind(strings.ReplaceAll(sessionYAML, "Health", "Other"))
			c.change(t, dir, s)
			tree = changed(t, s, tree)
			if whole := strings.Contains(title(t, tree), "Other"); whole != c.whole {
				t.Errorf("every file was looked at: %v, want %v", whole, c.whole)
			}
			put(t, dir, map[string]string{"specs/after.yaml": spec("after")})
			if tree = changed(t, s, tree); tree.Entry(session("after")) == nil {
				t.Error("what changed after that is not known")
			}
			s.Unwatch()
			if tree = changed(t, s, tree); !strings.Contains(title(t, tree), "Other") {
				t.Error("where nothing is told, not everything was looked at")
			}
		})
	}
}

// TestWatchAfterFresh checks that a run that goes on from what Fresh saw is told of what changes from then on.
func TestWatchAfterFresh(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"specs/health.yaml": sessionYAML, "specs/empty/.keep": "", "state/sessions/x.json": "{}"})
	first := open(t, dir)
	load(t, first)
	must(t, first.Settle(Summary{}))
	put(t, dir, map[string]string{"specs/b.yaml": strings.ReplaceAll(sessionYAML, "health", "b")})
	s := open(t, dir)
	if _, ok := s.Fresh(); ok {
		t.Fatal("fresh although a spec is new")
	}
	s.Watch()
	s.watch.Wait()                                  // as LoadChanged does
	s.freshScan.at = s.freshScan.at.Add(-time.Hour) // it does not matter how long ago that was
	put(t, dir, map[string]string{"specs/empty/c.yaml": strings.ReplaceAll(sessionYAML, "health", "c")})
	tree := load(t, s)
	if tree.Entry(session("b")) == nil || tree.Entry(session("c")) != nil {
		t.Error("the first look did not go on from what Fresh saw")
	}
	aside(t, dir, "specs/health.yaml")(strings.ReplaceAll(sessionYAML, "Health", "Other"))
	if tree = changed(t, s, tree); tree.Entry(session("c")) == nil || strings.Contains(title(t, tree), "Other") {
		t.Error("what changed since Fresh looked is not known, or every file was looked at for it")
	}
}

func TestTold(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"specs/a.yaml": "", "specs/replies/b.yaml": "", "state/sessions/x.json": "{}"})
	s := open(t, dir)
	hints := []string{"specs/a.yaml", "specs/b.yaml", "specs/replies/"}
	told := func(what string, want ...string) {
		t.Helper()
		if got := s.ChangedHints(func() []string { return hints }); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	told("nothing is watched", hints...)
	s.Watch()
	tree := load(t, s)
	told("nothing changed")
	put(t, dir, map[string]string{"state/sessions/y.json": "{}", "state/new/z.json": "{}"})
	told("what is no spec")
	put(t, dir, map[string]string{"specs/b.yaml": "x", "specs/other.yaml": "x"})
	told("a spec", "specs/b.yaml")
	told("again", "specs/b.yaml")
	put(t, dir, map[string]string{"specs/replies/c.yaml": "x"})
	told("a reply", "specs/b.yaml", "specs/replies/")
	tree = changed(t, s, tree)
	told("all was looked at")
	put(t, dir, map[string]string{"specs/new/d.yaml": "x"})
	told("a folder", hints...)
	changed(t, s, tree)
	told("all was looked at again")
	s.Unwatch()
	told("nothing is watched any more", hints...)
}

// watchMutants are faults in what is made of what the system tells, each with the test that must notice it.
var watchMutants = []mutants.Mutant{
	{"a full queue is nothing", "disk/watch_linux.go", `case !known, name == "", len`, `case !known && e.Wd >= 0, name == "" && e.Wd >= 0, len`, "TestRefreshChanged"},
	{"no folder is watched", "scan.go", "\tif t.watched() {\n\t\tv.folder(f, t.dir)\n\t}\n", "", "TestRefreshChanged"},
	{"folders that come are no news", "changes.go", "case isFolder && !u.ignorableFolder(p):", "case false:", "TestRefreshChanged"},
	{"statuses of others come alone", "changes.go", "for p, old := range was {", "for p, old := range map[string]*file{} {", "TestRefreshChanged"},
	{"what Fresh saw needs no watch", "changes.go", "\t\tw.AddLater(func() { g.watch(s.root, w) })", "\t\t_ = g.watch", "TestWatchAfterFresh"},
	{"folders are named by what is in them", "changes.go", "\t\tcase isFolder:\n", "\t\tcase isFolder && hints == nil:\n", "TestTold"},
	{"folders that were not there need no watch", "changes.go", "if !ok || u.folderAppeared(len(changed) > 0) {", "if !ok {", "TestRefreshChanged"},
}

func TestWatchMutants(t *testing.T) { mutants.Suite{Mutants: watchMutants}.Run(t) }
