package state

import (
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/mutants"
)

// listed returns the paths in a listing below dir: folders with a slash at their end, what is not part of the tree with a
// question mark.
func listed(l *Listing, dir string) (out []string) {
	names, _ := l.Folder(dir)
	for _, n := range names {
		at := path.Join(dir, n.Name)
		switch {
		case n.Folder:
			out = append(append(out, at+"/"), listed(l, at)...)
		case n.Other:
			out = append(out, at+"?")
		default:
			out = append(out, at)
		}
	}
	return out
}

// TestListingOfLinks: a spec may be a link, whose stat in git is not that of the file which was scanned.
func TestListingOfLinks(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"health.yaml": sessionYAML, "specs/notes.txt": "x"})
	must(t, os.Symlink("../health.yaml", filepath.Join(dir, "specs", "health.yaml")))
	first := open(t, dir)
	load(t, first)
	must(t, first.Settle(Summary{}))
	s := open(t, dir)
	if _, ok := s.Fresh(); !ok {
		t.Fatal("the tree is not as it was settled")
	}
	got := listed(s.Listing(), "specs")
	slices.Sort(got)
	if want := []string{"specs/health.yaml?", "specs/notes.txt?"}; !slices.Equal(got, want) {
		t.Errorf("listed %q, want %q", got, want)
	}
}

func TestListing(t *testing.T) {
	dir := t.TempDir()
	files := map[string]string{
		"specs/health.yaml": sessionYAML, "specs/notes.txt": "x", "specs/sub/README.md": "x", "state/readme.txt": "x",
		"state/sessions/health.json": "{}", "state/sessions/notes.txt": "x", "state/sessions/old.json~": "{}",
		"state/sessions/.hidden": "x", "state/sessions/sub/a.json": "{}",
		"state/runs/dags/a/x.json": "{}", "state/runs/dags/a/b/c/x.json": "{}", "state/memory/index.json": "{}",
		"state/archive/actions/2026/a.yaml": "x", "state/mine/a.json": "{}",
	}
	put(t, dir, files)
	first := open(t, dir)
	load(t, first)
	if first.Listing() != nil {
		t.Error("a listing without a scan by Fresh")
	}
	must(t, first.Settle(Summary{}))
	fresh := func() *Store {
		t.Helper()
		s := open(t, dir)
		if _, ok := s.Fresh(); !ok {
			t.Fatal("the tree is not as it was settled")
		}
		return s
	}
	s := fresh()
	l := s.Listing()
	var got []string
	for _, sub := range []string{"specs", "state"} {
		if _, ok := l.Folder(sub); !ok {
			t.Errorf("%s was not scanned", sub)
		}
		got = append(got, listed(l, sub)...)
	}
	slices.Sort(got)
	want := []string{"specs/health.yaml", "specs/notes.txt?", "specs/sub/", "specs/sub/README.md?", "state/archive/",
		"state/archive/actions/", "state/archive/actions/2026/", "state/archive/actions/2026/a.yaml", "state/memory/", "state/memory/index.json",
		"state/mine?", "state/readme.txt?", "state/runs/", "state/runs/dags/", "state/runs/dags/a/", "state/runs/dags/a/b?", "state/runs/dags/a/x.json",
		"state/sessions/", "state/sessions/health.json", "state/sessions/notes.txt?", "state/sessions/old.json~?", "state/sessions/sub?"}
	if !slices.Equal(got, want) {
		t.Errorf("listed:\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	for _, other := range []string{"state/mine", "state/dags", "state/sessions/sub", "elsewhere", "."} {
		if _, ok := l.Folder(other); ok {
			t.Errorf("%s counts as scanned", other)
		}
	}

	// A change that anybody has announced or this process has seen makes it invalid.
	tree := load(t, s)
	if s.Listing() == nil {
		t.Error("it is gone after the load")
	}
	_, _, _ = s.Refresh(t.Context(), tree, []string{"state/sessions/health.json"})
	if s.Listing() == nil {
		t.Error("it is gone after a look at a file that did not change")
	}
	changes := map[string]func(s *Store, tree *Tree){
		"another process wrote": func(*Store, *Tree) { must(t, first.Announce()) },
		"this process wrote":    func(s *Store, _ *Tree) { must(t, s.Announce()) },
		"a file changed": func(s *Store, tree *Tree) {
			put(t, dir, map[string]string{"specs/health.yaml": sessionYAML + "# more\n"})
			_, _, _ = s.Refresh(t.Context(), tree, []string{"specs/health.yaml"})
		},
		"a file is gone": func(s *Store, tree *Tree) {
			must(t, s.Root().Remove("state/memory/index.json"))
			_, _, _ = s.Refresh(t.Context(), tree, []string{"state/memory/index.json"})
		},
		"everything was scanned": func(s *Store, tree *Tree) { _, _, _ = s.Refresh(t.Context(), tree, nil) },
	}
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		first = open(t, dir)
		load(t, first)
		must(t, first.Settle(Summary{}))
		s = fresh()
		changes[name](s, load(t, s))
		if s.Listing() != nil {
			t.Errorf("%s: the listing is still there", name)
		}
		put(t, dir, files)
	}
	put(t, dir, map[string]string{"specs/health.yaml": sessionYAML + "# again\n"})
	s = open(t, dir)
	if _, ok := s.Fresh(); ok || s.Listing() != nil {
		t.Error("a listing of a tree that is not as it was settled")
	}
}

// TestStatusOfDormant reads the status of an object without loading it.
func TestStatusOfDormant(t *testing.T) {
	ref := schemas.Ref{Kind: schemas.SessionKind.Name, Name: "health"}
	tree := NewTree(nil, nil, nil, &Entry{Ref: ref, Problems: []schemas.Problem{{}}})
	if !tree.Exists(ref) || tree.Exists(schemas.Ref{Kind: ref.Kind, Name: "other"}) || tree.StatusOf(ref) != nil {
		t.Error("a broken object without a status exists, and another does not")
	}
}

// listingMutants are faults in when a listing is valid.
var listingMutants = []mutants.Mutant{
	{"a listing outlives a write", "listing.go", "|| g.gen != s.generation()", ""},
	{"a listing outlives a change that was seen", "update.go", "func (u *update) put(f *file) {\n\tu.store.settledScan = nil\n", "func (u *update) put(f *file) {\n"},
	{"a listing outlives a file", "update.go", "func (u *update) drop(p string) {\n\tu.store.settledScan = nil\n", "func (u *update) drop(p string) {\n"},
	{"a listing outlives a scan", "load.go", "\ts.settledScan = nil\n\ts.watch.Restart()", "\ts.watch.Restart()"},
	{"files that are not part of the tree are not listed", "scan.go", "}\n\t\tv.other(p.dir, name)\n\t\treturn", "}\n\t\treturn"},
	{"a link is listed with the stat of its target", "scan.go", "s.checkLink(p, name, a, v)\n\t\tv.other(p.dir, name)", "s.checkLink(p, name, a, v)"},
}

// orphanMutants are faults in whether an agent had started when its process was killed.
var orphanMutants = []mutants.Mutant{
	{"an agent that had just started did not start", "journals.go", "c.StartedAt = schemas.NewTime(fi.ModTime())", "_ = fi"},
	{"an agent starts again when its process is killed", "journals.go", "if c.StartedAt.IsZero() && c.Agent != \"\" {", "if c.Agent != \"\" {"},
	{"the token of a killed run stays", "journals.go", "err := s.root.Remove(TokenFile(o.Key))", "err := error(nil)"},
	{"a command that had not started has", "journals.go", "if c.StartedAt.IsZero() && c.Agent != \"\" {", "if c.StartedAt.IsZero() {"},
}

func TestMutants(t *testing.T) {
	mutants.Suite{Mutants: slices.Concat(mutants.NoticedBy("TestOrphanThatStarted", orphanMutants), mutants.NoticedBy("TestListing", listingMutants),
		mutants.NoticedBy("TestUnfinishedSpecs$", unfinishedMutants), mutants.NoticedBy("TestLoadSpecs", specsMutants),
		mutants.NoticedBy("TestLedgersInTheCache", cachedLedgerMutants))}.Run(t)
}
