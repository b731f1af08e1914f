package index_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"reconcile.dev/reconcile/cmd/reconcile/internal/gitrepo"
	"reconcile.dev/reconcile/cmd/reconcile/internal/index"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors"
	"reconcile.dev/reconcile/vectors/graph"
)

// rig is a tree in a git repository, and who keeps its index.
type rig struct {
	testing.TB
	dir    string
	store  *state.Store
	now    func() time.Time
	warned []string
}

func newRig(t testing.TB, files map[string]string) *rig {
	t.Helper()
	r := &rig{TB: t, dir: t.TempDir(), now: func() time.Time { return time.Now().Add(time.Hour) }}
	if out, err := exec.Command("git", "init", "-q", r.dir).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	for p, text := range files {
		r.write(p, text)
	}
	var err error
	if r.store, err = state.Open(r.dir, state.Options{Kinds: controllers.Schemas(), Now: time.Now, NoCache: true}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.store.Close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *rig) write(p, text string) {
	r.Helper()
	full := filepath.Join(r.dir, filepath.FromSlash(p))
	if err := os.MkdirAll(filepath.Dir(full), 0o777); err != nil {
		r.Fatal(err)
	}
	if err := os.WriteFile(full, []byte(text), 0o666); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) read(p string) []byte {
	r.Helper()
	data, err := os.ReadFile(filepath.Join(r.dir, filepath.FromSlash(p)))
	if err != nil {
		r.Fatal(err)
	}
	return data
}

func (r *rig) remove(p string) {
	r.Helper()
	if err := os.Remove(filepath.Join(r.dir, filepath.FromSlash(p))); err != nil {
		r.Fatal(err)
	}
}

func (r *rig) keeper() (*index.Keeper, *state.Tree) {
	r.Helper()
	tree, err := r.store.Load(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	repo, err := gitrepo.Open(r.dir)
	if err != nil {
		r.Fatal(err)
	}
	ignores, err := repo.Ignores(r.Context())
	if err != nil {
		r.Fatal(err)
	}
	warn := func(err error) { r.warned = append(r.warned, err.Error()) }
	return &index.Keeper{Store: r.store, Ignored: ignores.Folder, Now: r.now, Warn: warn}, tree
}

// refresh brings the index up to date, all of it.
func (r *rig) refresh() *index.Kept {
	r.Helper()
	k, tree := r.keeper()
	x, err := k.Refresh(r.Context(), tree)
	if err == nil && x.Finish != nil {
		x, err = x.Finish(r.Context())
	}
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(x.Close)
	return x
}

// ids are the nodes of the index.
func ids(x *index.Kept) []string {
	var out []string
	for n := range x.Graph().All() {
		out = append(out, x.Graph().ID(n))
	}
	return out
}

func has(x *index.Kept, id string) bool {
	_, ok := x.Graph().Find(id)
	return ok
}

var program = map[string]string{
	"go.mod": "module example.com/m\n", "main.go": "package main\n\n// main greets.\nfunc main() { hello() }\n",
	"hello.go": "package main\n\nfunc hello() {}\n", "docs/a.md": "# A\n\nSee `main.go`.\n", "notes.txt": "remember the milk\n",
}

func TestWhatIsIndexed(t *testing.T) {
	t.Parallel()
	r := newRig(t, program)
	for p, text := range map[string]string{
		".gitignore": "*.log\n/out/\n", "deep/.gitignore": "*.txt\n!kept.txt\n", ".git/info/exclude": "private.*\n",
		"a.log": "x", "out/b.txt": "x", "deep/c.txt": "x", "deep/kept.txt": "x", "private.txt": "x", ".hidden/d.txt": "x",
		"testdata/e.txt": "x", "pkg/testdata/f.txt": "x", "vendor/g.go": "package g", "node_modules/h.js": "x", "skip/me.txt": "x",
		"binary.bin": "a\x00b", "large.txt": strings.Repeat("x", 5000), "empty.txt": "", "not-utf8.txt": "caf\xe9\n",
		"reconcile.yaml": "apiVersion: reconcile.dev/v1alpha1\nkind: Settings\nmetadata: {name: settings}\nspec:\n" +
			"  index: {exclude: [\"skip/**\"], maxFileSize: 4096}\n",
	} {
		r.write(p, text)
	}
	if err := os.Symlink("main.go", filepath.Join(r.dir, "link.go")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("docs", filepath.Join(r.dir, "linked")); err != nil {
		t.Fatal(err)
	}
	r.write(".reconcile/x.txt", "x")
	x := r.refresh()
	for range 2 { // read, and known
		if left := (index.LeftOut{Large: 1, Binary: 1}); x.How.LeftOut != left {
			t.Errorf("left out are %+v, want %+v", x.How.LeftOut, left)
		}
		x = r.refresh()
	}
	var files []string
	for _, id := range ids(x) {
		if n, _ := x.Graph().Find(id); x.Graph().Type(n) == graph.File {
			files = append(files, id)
		}
	}
	want := []string{
		".gitignore", "deep/.gitignore", "deep/kept.txt", "go.mod", "hello.go", "main.go", "not-utf8.txt", "notes.txt",
		"reconcile.yaml",
	}
	if !slices.Equal(files, want) {
		t.Errorf("indexed %q\nwant    %q", files, want)
	}
}

// What is tracked is indexed even where git would ignore it, as git itself does.
func TestTrackedIsIndexed(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{
		".gitignore": "*.log\n/out/\n", "kept.log": "x", "other.log": "x", "out/kept.txt": "x", "out/other.txt": "x",
		"out/deep/kept.txt": "x", "out/deep/other.txt": "x", "out/.gitignore": "!other.txt\n", "out/none/other.txt": "x", "a.txt": "x",
	})
	for _, options := range [][]string{{}, {"--index-version=4"}, {"--split-index"}} {
		args := append([]string{"-C", r.dir, "update-index", "--add"}, options...)
		if out, err := exec.Command("git", append(args, "kept.log", "out/kept.txt", "out/deep/kept.txt")...).CombinedOutput(); err != nil {
			t.Fatalf("git update-index %q: %v\n%s", options, err, out)
		}
		x := r.refresh()
		want := []string{".gitignore", "a.txt", "kept.log", "out/deep/kept.txt", "out/kept.txt"}
		if got := ids(x); !slices.Equal(got, want) {
			t.Errorf("%q: indexed %q, want %q", options, got, want)
		}
	}
	r.write(".git/index", "damaged")
	if x := r.refresh(); !has(x, "a.txt") || has(x, "kept.log") {
		t.Errorf("with a damaged index of git: %q", ids(x))
	}
}

// Deleted, the index comes back the same; after edits it says what a rebuild says.
func TestRebuildIsTheSame(t *testing.T) {
	t.Parallel()
	r := newRig(t, program)
	if x := r.refresh(); x.How.Rebuilt == "" || !has(x, "main.go:main") || !has(x, "docs/a.md#a") {
		t.Fatalf("%+v, %q", x.How, ids(x))
	}
	first := r.read(index.SnapshotPath)
	if x := r.refresh(); x.How.Changed+x.How.Gone != 0 || x.How.Rebuilt != "" {
		t.Errorf("nothing changed: %+v", x.How)
	}
	r.remove(index.SnapshotPath)
	r.remove(".reconcile/cache/index-files")
	r.refresh()
	if !bytes.Equal(first, r.read(index.SnapshotPath)) {
		t.Error("a rebuild makes other bytes")
	}
	r.write("notes.txt", "remember the tea\n")
	r.write("new.md", "# New\n")
	r.remove("docs/a.md")
	x := r.refresh()
	if x.How.Changed != 2 || x.How.Gone != 1 || x.How.Rebuilt != "" || !has(x, "new.md#new") || has(x, "docs/a.md") {
		t.Errorf("after edits: %+v, %q", x.How, ids(x))
	}
	k, tree := r.keeper()
	if v, err := k.Verify(t.Context(), tree, x); err != nil || !v.Sound || v.Recall.Default != 1 || v.Recall.Thorough != 1 {
		t.Errorf("%+v, %v", v, err)
	}
	r.write("notes.txt", program["notes.txt"])
	r.write("docs/a.md", program["docs/a.md"])
	r.remove("new.md")
	if x = r.refresh(); x.Delta() != nil || x.How.Rebuilt != "" {
		t.Errorf("all is as it was: %+v", x.How)
	}
	if _, err := os.Stat(filepath.Join(r.dir, index.DeltaPath)); !os.IsNotExist(err) {
		t.Errorf("the delta is still there: %v", err)
	}
}

// A file that is written again at once, with a content of the same length and with the time that it had, is noticed.
func TestRacyEdits(t *testing.T) {
	t.Parallel()
	r := newRig(t, program)
	r.now = time.Now
	at := time.Now().Add(-time.Hour)
	for i, text := range []string{"alpha\n", "gamma\n", "delta\n"} {
		r.write("notes.txt", text)
		if err := os.Chtimes(filepath.Join(r.dir, "notes.txt"), at, at); err != nil {
			t.Fatal(err)
		}
		a, err := r.refresh().Search(t.Context(), vectors.Query{Text: strings.TrimSpace(text), Mode: vectors.Lexical})
		if err != nil || len(a.Results) != 1 || a.Results[0].ID != "notes.txt" {
			t.Errorf("content %d is not found: %+v, %v", i, a, err)
		}
	}
}

// What changes while it is read, and then changes back, is not taken for what it was.
func TestChangeWhileReading(t *testing.T) {
	t.Parallel()
	for _, change := range map[string]func(*rig){
		"other text": func(r *rig) { r.write("notes.txt", "coffee\n") },
		"no file":    func(r *rig) { r.remove("notes.txt") },
	} {
		r := newRig(t, program)
		r.write("notes.txt", "tea\n")
		k, tree := r.keeper()
		k.Progress = func(string, int, int) {
			k.Progress = nil
			change(r)
		}
		x, err := k.Rebuild(t.Context(), tree)
		if err != nil {
			t.Fatal(err)
		}
		x.Close()
		r.write("notes.txt", "tea\n")
		a, err := r.refresh().Search(t.Context(), vectors.Query{Text: "tea", Mode: vectors.Lexical})
		if err != nil || len(a.Results) != 1 {
			t.Errorf("found %+v, %v", a, err)
		}
	}
}

// What a file of facts states is taken as what it held when it was read.
func TestFactsChangeWhileReading(t *testing.T) {
	t.Parallel()
	const p = "state/graph/by-hand.json"
	facts := func(kind string) string {
		return `{"edges": [{"from": "docs/a.md", "to": "hello.go", "type": "` + kind + `"}]}`
	}
	stated := func(x *index.Kept) (out []string) {
		doc, _ := x.Graph().Find("docs/a.md")
		n, _ := x.Graph().Find("hello.go")
		for _, e := range x.Graph().Between(doc, n) {
			if e.Source == p {
				out = append(out, e.Type.String())
			}
		}
		return out
	}
	for _, change := range []func(*rig){
		func(r *rig) { r.write(p, facts("implements")) },
		func(r *rig) { r.remove(p) },
		func(r *rig) { r.write(p, "{") },
	} {
		r := newRig(t, program)
		r.write(p, facts("documents"))
		k, tree := r.keeper()
		k.Progress = func(string, int, int) {
			k.Progress = nil
			change(r)
		}
		x, err := k.Rebuild(t.Context(), tree)
		if err != nil {
			t.Fatal(err)
		}
		if got := stated(x); slices.Contains(got, "documents") {
			t.Errorf("what the file does not state any more is taken: %q", got)
		}
		x.Close()
		r.write(p, facts("documents"))
		if got := stated(r.refresh()); !slices.Equal(got, []string{"documents"}) {
			t.Errorf("after it states again what it did: %q", got)
		}
	}
}

// A file of facts that is no text states nothing, and is not read again while it stays.
func TestFactsThatAreNoText(t *testing.T) {
	t.Parallel()
	r := newRig(t, program)
	r.write("state/graph/by-hand.json", "{\x00}")
	if r.refresh(); len(r.warned) == 0 {
		t.Error("nobody is told of it")
	}
	if x := r.refresh(); x.How.Changed != 0 {
		t.Errorf("it is taken for changed: %+v", x.How)
	}
}

func TestDamagedIsRebuilt(t *testing.T) {
	t.Parallel()
	r := newRig(t, program)
	r.refresh()
	whole := r.read(index.SnapshotPath)
	for _, damaged := range [][]byte{nil, whole[:4096], append([]byte("other"), whole[5:]...), []byte("no index at all")} {
		r.write(index.SnapshotPath, string(damaged))
		if x := r.refresh(); x.How.Rebuilt == "" || !bytes.Equal(whole, r.read(index.SnapshotPath)) {
			t.Errorf("of %d damaged bytes: %+v", len(damaged), x.How)
		}
	}
	older := bytes.Clone(whole)
	older[8]--
	r.write(index.SnapshotPath, string(older))
	if x := r.refresh(); !strings.HasPrefix(x.How.Rebuilt, "another version of reconcile made the index") || !bytes.Equal(whole, r.read(index.SnapshotPath)) {
		t.Errorf("of an older version: %+v", x.How)
	}
	r.write("notes.txt", "remember the tea\n")
	r.refresh()
	delta := r.read(index.DeltaPath)
	delta[len(delta)/2] ^= 1
	r.write(index.DeltaPath, string(delta))
	x := r.refresh()
	a, err := x.Search(t.Context(), vectors.Query{Text: "tea", Mode: vectors.Lexical})
	if err != nil || len(a.Results) != 1 || x.How.Changed != 1 || x.How.Rebuilt != "" {
		t.Errorf("after a damaged delta: %+v, %+v, %v", x.How, a, err)
	}
	k, tree := r.keeper()
	for at := 0; at < len(whole); at += 4096 + 64 {
		flipped := bytes.Clone(whole)
		flipped[at] ^= 4
		r.write(index.SnapshotPath, string(flipped))
		x, err := k.Open(tree)
		if err != nil {
			continue
		}
		if v, err := k.Verify(t.Context(), tree, x); err == nil && v.Sound {
			t.Errorf("a byte that is flipped at %d is not noticed", at)
		}
		x.Close()
	}
}

// A byte that is another one anywhere in what is not compared as it is used, as the vectors, is noticed by the first who
// opens the file; whoever comes after a sound one, or after who wrote it, need not compare.
func TestDamageBehindTheHeader(t *testing.T) {
	t.Parallel()
	const known, words, align = ".reconcile/cache/index-sound", 16, 64
	r := newRig(t, program)
	r.now = time.Now
	r.refresh()
	whole, noted := r.read(index.SnapshotPath), r.read(known)
	k, tree := r.keeper()
	put := func(data []byte, hours int) { // with a time of its own, however coarse the clock is
		r.write(index.SnapshotPath, string(data))
		at := time.Now().Add(-time.Duration(hours) * time.Hour)
		if err := os.Chtimes(filepath.Join(r.dir, index.SnapshotPath), at, at); err != nil {
			t.Fatal(err)
		}
	}
	count := uint64(binary.LittleEndian.Uint32(whole[12:]))
	end := (16 + 8*count + 8 + align - 1) / align * align
	for i := range int(count) {
		at, size := end, binary.LittleEndian.Uint64(whole[16+8*i:])
		if end += (size + align - 1) / align * align; i == words || size == 0 {
			continue
		}
		flipped := bytes.Clone(whole)
		flipped[at+size/2] ^= 1
		put(flipped, i+1)
		if x, err := k.Open(tree); err == nil {
			x.Close()
			t.Errorf("a byte that is flipped in section %d is not noticed", i)
		} else if !errors.Is(err, vectors.ErrDamaged) {
			t.Error(err)
		}
		if !bytes.Equal(r.read(known), noted) {
			t.Errorf("with a byte that is flipped in section %d it is noted as sound", i)
		}
	}
	if x := r.refresh(); x.How.Rebuilt == "" || !bytes.Equal(r.read(index.SnapshotPath), whole) || bytes.Equal(r.read(known), noted) {
		t.Errorf("after damage: %+v", x.How)
	}
	put(whole, 100) // as a copy would be
	r.now = func() time.Time { return time.Now().Add(time.Hour) }
	noted = r.read(known)
	if x := r.refresh(); x.How.Rebuilt != "" || bytes.Equal(r.read(known), noted) {
		t.Errorf("a sound copy is not noted: %+v", x.How)
	}
}

func TestTwoAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t, program)
	var both sync.WaitGroup
	for range 3 {
		k, tree := r.keeper()
		k.Warn = func(err error) { t.Error(err) }
		both.Go(func() {
			x, err := k.Refresh(context.Background(), tree)
			if err == nil && x.Finish != nil {
				x, err = x.Finish(context.Background())
			}
			if err != nil {
				t.Error(err)
				return
			}
			x.Close()
		})
	}
	both.Wait()
	if x := r.refresh(); !has(x, "main.go:main") || x.How.Rebuilt != "" {
		t.Errorf("%+v", x.How)
	}
}

// A tree cannot tell ctags what to do, and where there is none files are still found.
func TestTags(t *testing.T) {
	r := newRig(t, map[string]string{
		"lib/a.py": "def greet(name):\n    return name\n", "notes.txt": "milk\n",
		".ctags.d/evil.ctags": "--kinddef-python=q,quirk,quirks\n--regex-python=/return (name)/pwned/q/\n--langmap=python:+.txt\n",
		".ctags":              "--exclude=*\n",
		"ui/valve.tsx":        "import { type Flow } from './flow';\nexport class Valve extends React.Component<Props> {\n  private open(x: Flow) {\n    if(x) {}\n  }\n}\n",
		"ui/pump.jsx":         "export const Page = () => <p>Don't</p>;\nexport const Pump = React.memo(Page);\n",
	})
	_, err := exec.LookPath("ctags")
	installed := err == nil
	for _, id := range []string{"ui/valve.tsx:Valve.open", "ui/pump.jsx:Pump"} {
		if x := r.refresh(); has(x, id) != installed {
			t.Errorf("ctags is there: %t; %s is not among %q", installed, id, ids(x))
		}
	}
	if x := r.refresh(); has(x, "ui/valve.tsx:Flow") || has(x, "ui/valve.tsx:Valve.if") {
		t.Errorf("found what is not defined: %q", ids(x))
	}
	if x := r.refresh(); has(x, "lib/a.py:greet") != installed || !has(x, "lib/a.py") || has(x, "lib/a.py:pwned") {
		t.Errorf("ctags is there: %t; found %q", installed, ids(x))
	}
	git, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(git, filepath.Join(bin, "git")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	if x := r.refresh(); has(x, "lib/a.py:greet") || !has(x, "lib/a.py") {
		t.Errorf("without ctags: %q", ids(x))
	}
}

func TestFactsOfFiles(t *testing.T) {
	t.Parallel()
	r := newRig(t, program)
	r.write("state/graph/by-hand.json", `{"edges": [{"from": "docs/a.md", "to": "./:hello", "type": "documents", "weight": 0.5}],
		"provenances": [{"id": "p", "node": "hello.go", "confidence": 0.9, "verifiedAt": "2026-01-02T03:04:05Z"}],
		"conflicts": [{"id": "c", "a": "hello.go", "b": "main.go", "type": "duplicate"}]}`)
	x := r.refresh()
	doc, _ := x.Graph().Find("docs/a.md")
	n, _ := x.Graph().Find("hello.go:hello")
	want := graph.Edge{From: "docs/a.md", To: "hello.go:hello", Type: graph.Documents, Weight: 0.5, Source: "state/graph/by-hand.json"}
	if stated := x.Graph().Between(doc, n); !slices.Contains(stated, want) || len(r.warned) > 0 {
		t.Errorf("edges %+v, warnings %q", stated, r.warned)
	}
	n, _ = x.Graph().Find("hello.go")
	if p := x.Graph().Provenance(n); len(p) != 1 || p[0].Confidence != 900 || p[0].VerifiedAt != 1767323045 {
		t.Errorf("provenances %+v", p)
	}
	if c := x.Graph().Conflicts(n); len(c) != 1 || c[0].B != "main.go" {
		t.Errorf("conflicts %+v", c)
	}
	for _, bad := range []string{
		`{"edge": []}`, `{"edges": [{"from": "a", "to": "b", "type": "likes"}]}`, `[]`, `{} {}`, `{"edges": [{"from": "", "to": "b", "type": "calls"}]}`,
		`{"edges": [{"from": "a", "to": "b", "type": "calls", "weight": 2}]}`, `{"provenances": [{"id": "p", "node": "a", "confidence": 7}]}`,
		`{"conflicts": [{"id": "c", "a": "a"}]}`, strings.Repeat(" ", 5<<20), `{"edges": [` + strings.Repeat(`{},`, 10_000) + `{}]}`,
	} {
		r.warned = nil
		r.write("state/graph/by-hand.json", bad)
		x = r.refresh()
		n, _ = x.Graph().Find("hello.go")
		if len(r.warned) != 1 || !strings.HasPrefix(r.warned[0], "state/graph/by-hand.json states nothing: ") || len(x.Graph().Provenance(n)) > 0 {
			t.Errorf("%.60s: warnings %q", bad, r.warned)
		}
	}
}
