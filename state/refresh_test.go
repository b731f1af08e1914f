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
	"reconcile.dev/reconcile/state/durable"
	"reconcile.dev/reconcile/state/mutants"
)

// TestRefreshIsLoad makes random edits to a small tree and checks that a Refresh with hints leads to the same tree as
// a Load from nothing, and names exactly the objects that differ.
func TestRefreshIsLoad(t *testing.T) {
	for seed := range uint64(mutants.Size(2, 6, 6)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			w := &walker{T: t, dir: t.TempDir(), rand: rand.New(rand.NewPCG(seed, 1))}
			w.store = open(t, w.dir)
			tree := load(t, w.store)
			for step := range 80 {
				var hints []string
				for range 1 + w.rand.IntN(3) {
					hints = append(hints, w.edit()...)
				}
				if w.rand.IntN(8) == 0 {
					hints = nil
				}
				next, refs, err := w.store.Refresh(t.Context(), tree, hints)
				if err != nil {
					t.Fatal(err)
				}
				w.compare(step, hints, next)
				if want := diffModels(tree, next); !slices.Equal(refs, want) {
					t.Fatalf("step %d: hints %q: Refresh names %v, different are %v", step, hints, refs, want)
				}
				tree = next
			}
		})
	}
}

// walker edits a tree at random.
type walker struct {
	*testing.T
	dir   string
	rand  *rand.Rand
	store *Store
	log   []string
}

func (w *walker) compare(step int, hints []string, got *Tree) {
	w.Helper()
	s, err := Open(w.dir, Options{Kinds: testKinds, Now: time.Now, NoCache: true})
	if err != nil {
		w.Fatal(err)
	}
	defer s.Close()
	s.decoder = w.store.decoder // its schemas are compiled
	want := dump(load(w, s))
	if dump(got) != want {
		w.Fatalf("step %d: hints %q after %q\nRefresh:\n%s\nLoad:\n%s", step, hints, w.log[max(0, len(w.log)-8):],
			without(dump(got), want), without(want, dump(got)))
	}
}

// without returns the lines of a that b has not.
func without(a, b string) string {
	have := strings.Split(b, "\n")
	return strings.Join(slices.DeleteFunc(strings.Split(a, "\n"), func(l string) bool { return slices.Contains(have, l) }), "\n")
}

func (w *walker) pick(words ...string) string { return words[w.rand.IntN(len(words))] }

// edit changes something and returns the hints for it.
func (w *walker) edit() []string {
	name := w.pick("a", "b", "c")
	folder := w.pick("specs", "specs", "specs/x", "specs/X")
	switch w.rand.IntN(22) {
	case 19:
		w.write("src/"+w.pick("a", "b", "x/a", "x/b")+".go", w.pick("package a", "package b"))
		return []string{w.pick("src", ".")}
	case 20:
		w.write("specs/"+w.pick("x", "x/y")+"/"+w.pick("a", "b", "dag-c", ".b", "d.yaml/a")+".yaml", w.pick(w.session(name), w.dag(name)))
		return []string{"specs/x"}
	case 21:
		w.write("state/"+w.pick("sessions", "dags")+"/"+name+".json", w.status(name))
		w.remove("state/" + w.pick("sessions", "dags") + "/a.json")
		return []string{"state/sessions", "state/dags"}
	case 0, 1, 2:
		return w.write(folder+"/"+w.pick("a", "b", "c", "A")+".yaml", w.session(name))
	case 3, 4, 5:
		return w.write(folder+"/dag-"+name+".yaml", w.dag(name))
	case 6:
		return w.write("state/sessions/"+name+".json", w.status(name))
	case 7, 8:
		return w.remove(folder + "/" + w.pick("a", "b", "c", "A", "dag-a", "dag-b", "dag-c") + ".yaml")
	case 9:
		return w.remove(w.pick("state/sessions", "state/dags", "state/clarifications", "specs/x", "specs", "state"))
	case 10:
		return w.write("src/"+name+".go", w.pick("package a", "package b", "package c"))
	case 11:
		return w.remove(w.pick("src/a.go", "src/b.go", "src"))
	case 12, 13:
		return w.write("specs/act-"+name+".yaml", w.action(name))
	case 14:
		return w.write("state/actions/"+name+".json", w.encode("Action", name,
			&schemas.ActionStatus{Common: schemas.Common{Phase: w.pick(schemas.ActionPending, schemas.ActionApplied)}}))
	case 15:
		return w.write("state/dags/"+name+".json", w.encode("DAG", name,
			&schemas.DAGStatus{Actions: []schemas.AppliedAction{{Name: w.pick("a", "b", "c")}}}))
	}
	if ledger := "state/clarifications/issue-" + w.pick("1", "2", "03") + ".json"; w.rand.IntN(3) > 0 {
		return w.ledger(ledger)
	}
	return w.link(folder+"/link.yaml", w.pick("a.yaml", "../a.yaml", "../../outside", "b.yaml"))
}

func (w *walker) write(p, content string) []string {
	w.log = append(w.log, "write "+p+" "+content)
	at := filepath.Join(w.dir, p)
	if fi, err := os.Lstat(filepath.Dir(at)); err == nil && !fi.IsDir() {
		return nil
	}
	if (&layout{kinds: testKinds, specs: "specs", state: "state"}).replaces(filepath.Dir(p)) {
		os.Remove(at)
	}
	put(w, w.dir, map[string]string{p: content})
	return []string{p}
}

func (w *walker) remove(p string) []string {
	w.log = append(w.log, "remove "+p)
	if err := os.RemoveAll(filepath.Join(w.dir, p)); err != nil {
		w.Fatal(err)
	}
	return []string{p}
}

func (w *walker) link(p, to string) []string {
	w.log = append(w.log, "link "+p+" "+to)
	at := filepath.Join(w.dir, p)
	_ = os.Remove(at)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		w.Fatal(err)
	}
	if err := os.Symlink(to, at); err != nil {
		w.Fatal(err)
	}
	return []string{p}
}

func (w *walker) session(name string) string {
	return fmt.Sprintf("apiVersion: %s\nkind: Session\nmetadata: {name: %s}\nspec: {%s}\n", schemas.APIVersion, name,
		w.pick("title: One", "title: Two", "titel: Three", ""))
}

func (w *walker) dag(name string) string {
	return fmt.Sprintf("apiVersion: %s\nkind: DAG\nmetadata: {name: %s}\nspec:\n  session: %s\n  nodes:\n  - {name: %s, run: [%s]%s}\n",
		schemas.APIVersion, name, w.pick("a", "b", "c"), w.pick("n", "n", "m"), w.pick("x", "y"), w.pick("", ", inputs: ['src/*.go']", ", inputs: ['**/a.go']", ", timeout: soon"))
}

// ledger writes a ledger, or half of one, or removes it.
func (w *walker) ledger(p string) []string {
	issue := int(strings.TrimSuffix(p, ".json")[len(p)-len("1.json")] - '0')
	text := ledgerOf(issue, []string{"pending", "resolved", "stale"}[:w.rand.IntN(4)]...)
	switch w.rand.IntN(6) {
	case 0:
		return w.remove(p)
	case 1:
		return w.write(p, text[:len(text)/2])
	}
	return w.write(p, text)
}

// action is one on a node that its target sometimes has.
func (w *walker) action(name string) string {
	return fmt.Sprintf("apiVersion: %s\nkind: Action\nmetadata: {name: %s}\nspec: {target: dag/%s, node: %s, verb: hold}\n",
		schemas.APIVersion, name, w.pick("a", "b"), w.pick("n", "m"))
}

func (w *walker) status(name string) string {
	if w.rand.IntN(4) == 0 {
		return "{"
	}
	return w.encode("Session", name, &schemas.SessionStatus{Common: schemas.Common{Phase: w.pick("Active", "Paused")}})
}

func (w *walker) encode(kind, name string, st schemas.Status) string {
	b, err := EncodeStatus(schemas.Ref{Kind: kind, Name: name}, st)
	if err != nil {
		w.Fatal(err)
	}
	return string(b)
}

// What another process writes beside Write is seen without a hint once it is announced.
func TestAnnounce(t *testing.T) {
	dir := t.TempDir()
	ours, theirs := open(t, dir), open(t, dir)
	tree := load(t, ours)
	const name = "specs/sessions/new.yaml"
	src := []byte("apiVersion: reconcile.dev/v1alpha1\nkind: Session\nmetadata: {name: new}\nspec: {}\n")
	if err := durable.WriteFile(theirs.Root(), tmpDir, name, src); err != nil {
		t.Fatal(err)
	}
	look := func() int {
		next, _, err := ours.Refresh(t.Context(), tree, []string{})
		if err != nil {
			t.Fatal(err)
		}
		tree = next
		return len(tree.Entries(schemas.SessionKind.Name))
	}
	if n := look(); n != 0 {
		t.Errorf("%d sessions are seen without a hint", n)
	}
	if err := theirs.Announce(); err != nil {
		t.Fatal(err)
	}
	if n := look(); n != 1 {
		t.Errorf("%d sessions are seen after they were announced", n)
	}
}

// TestRefreshOfNewcomers checks that a hint that ends in a slash finds what is new right in a folder, whenever it came, and
// looks at nothing else.
func TestRefreshOfNewcomers(t *testing.T) {
	dir := t.TempDir()
	session := func(name string) string { return strings.ReplaceAll(sessionYAML, "health", name) }
	put(t, dir, map[string]string{"specs/a/health.yaml": sessionYAML})
	s := open(t, dir)
	tree := load(t, s)
	names := func() (out []string) {
		for _, e := range tree.Entries(health.Kind) {
			out = append(out, e.Name)
		}
		return out
	}
	want := []string{"health"}
	for i := range 5 { // some of them in one tick of the clock of the file system
		name := fmt.Sprintf("new-%d", i)
		put(t, dir, map[string]string{"specs/a/" + name + ".yaml": session(name), "specs/a/deeper/" + name + "x.yaml": session(name + "x")})
		tree, _ = refresh(t, s, tree, "specs/a/", "specs/none/")
		if want = append(want, name); !slices.Equal(names(), want) {
			t.Fatalf("%q, want %q", names(), want)
		}
	}
	put(t, dir, map[string]string{"specs/a/health.yaml": session("other")})
	if tree, _ = refresh(t, s, tree, "specs/a/"); !slices.Equal(names(), want) {
		t.Errorf("it looked at what it knew: %q", names())
	}
	tree, _ = refresh(t, s, tree, "specs")
	if len(names()) != 11 || tree.Entry(health) != nil {
		t.Errorf("after a look at everything: %q", names())
	}
}

// TestLoadAfterFresh checks that what Fresh saw is not taken for what there is now where somebody wrote since.
func TestLoadAfterFresh(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"specs/health.yaml": sessionYAML})
	first := open(t, dir)
	load(t, first)
	must(t, first.Settle(Summary{}))
	put(t, dir, map[string]string{"specs/b.yaml": strings.ReplaceAll(sessionYAML, "health", "b")})
	s := open(t, dir)
	if _, ok := s.Fresh(); ok || s.freshScan == nil {
		t.Fatal("fresh, or nothing was kept, although a spec is new")
	}
	put(t, dir, map[string]string{"specs/c.yaml": strings.ReplaceAll(sessionYAML, "health", "c")})
	must(t, first.Announce())
	if n := len(load(t, s).Entries(health.Kind)); n != 3 {
		t.Errorf("%d objects; want that which another process announced, too", n)
	}
	s = open(t, dir)
	s.Fresh()
	put(t, dir, map[string]string{"specs/d.yaml": strings.ReplaceAll(sessionYAML, "health", "d")})
	s.freshScan.at = s.freshScan.at.Add(-2 * time.Second)
	if n := len(load(t, s).Entries(health.Kind)); n != 4 {
		t.Errorf("%d objects; want that which came while it did something else, too", n)
	}
}

// TestFolderHintIsAboutThatFolder: what changed elsewhere is not looked at.
func TestFolderHintIsAboutThatFolder(t *testing.T) {
	w := &walker{T: t, dir: t.TempDir(), rand: rand.New(rand.NewPCG(1, 1))}
	session := func(name, title string) string {
		return fmt.Sprintf("apiVersion: %s\nkind: Session\nmetadata: {name: %s}\nspec: {title: %s}\n", schemas.APIVersion, name, title)
	}
	w.write("specs/far.yaml", session("far", "One"))
	w.write("specs/x/y/near.yaml", session("near", "One"))
	w.store = open(t, w.dir)
	tree := load(t, w.store)
	titles := func(hints ...string) (out string) {
		t.Helper()
		var err error
		if tree, _, err = w.store.Refresh(t.Context(), tree, hints); err != nil {
			t.Fatal(err)
		}
		for _, e := range tree.Entries("Session") {
			out += e.Name + " " + e.Object.Spec().(*schemas.SessionSpec).Title + ";"
		}
		return out
	}
	w.write("specs/far.yaml", session("far", "Two"))
	w.write("specs/x/y/near.yaml", session("near", "Two"))
	w.write("specs/x/new.yaml", session("new", "One"))
	if got := titles("specs/x"); got != "far One;near Two;new One;" {
		t.Error(got)
	}
	w.remove("specs/x/y")
	if got := titles("specs/x/y"); got != "far One;new One;" {
		t.Error(got)
	}
	if got := titles("specs"); got != "far Two;new One;" {
		t.Error(got)
	}
}
