package state

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state/mutants"
)

const sessionSpec = "apiVersion: " + schemas.APIVersion + "\nkind: Session\nmetadata: {name: s}\nspec: {title: s}\n"

// TestRefreshInputsIsLoad edits files at random without a word to the store, and the globs with one. Of the nodes that it is
// asked about, RefreshInputs then knows what a Load from nothing does.
func TestRefreshInputsIsLoad(t *testing.T) {
	for seed := range uint64(mutants.Size(2, 4, 4)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			dir, r := t.TempDir(), rand.New(rand.NewPCG(seed, 5))
			pick := func(words ...string) string { return words[r.IntN(len(words))] }
			dag := func(name string) string {
				return fmt.Sprintf("apiVersion: %s\nkind: DAG\nmetadata: {name: %s}\nspec:\n  session: s\n  nodes:\n"+
					"  - {name: n0, run: [x], inputs: [%s]}\n  - {name: n1, run: [x], inputs: ['src/*.go', %s]}\n", schemas.APIVersion, name,
					pick("'src/a.*'", "'**/b.go'", "'docs/**'"), pick("'docs/*.md'", "'src/x/*.go'", "src/a.go"))
			}
			for _, name := range []string{"a", "b", "c"} {
				put(t, dir, map[string]string{"specs/" + name + ".yaml": dag(name), "src/" + name + ".go": name})
			}
			put(t, dir, map[string]string{"specs/s.yaml": sessionSpec})
			kept := storedAsRulesSay(t, dir, false)
			tree := load(t, kept)
			for step := range 150 {
				p := pick("src/a.go", "src/b.go", "src/x/b.go", "docs/a.md", "docs/deep/b.go", "src/.gitattributes", ".gitattributes", "rules")
				switch r.IntN(4) {
				case 0:
					if err := os.RemoveAll(filepath.Join(dir, p)); err != nil {
						t.Fatal(err)
					}
				case 1:
					name := pick("a", "b", "c")
					put(t, dir, map[string]string{"specs/" + name + ".yaml": dag(name)})
					var err error
					if tree, _, err = kept.Refresh(t.Context(), tree, []string{"specs/" + name + ".yaml"}); err != nil {
						t.Fatal(err)
					}
				default:
					put(t, dir, map[string]string{p: pick("one", "two", "more")})
				}
				ask := map[schemas.Ref][]string{{Kind: "DAG", Name: pick("a", "b", "c")}: {"n0", "n1"}, {Kind: "DAG", Name: "a"}: {pick("n0", "n1")}}
				next, refs, err := kept.RefreshInputs(t.Context(), tree, ask)
				if err != nil {
					t.Fatal(err)
				}
				anew := load(t, storedAsRulesSay(t, dir, true))
				for ref, nodes := range ask {
					for _, n := range nodes {
						if got, want := next.Entry(ref).Inputs[n], anew.Entry(ref).Inputs[n]; got != want || got == "" {
							t.Fatalf("step %d, %s: %s of %s is %s, want %s", step, p, n, ref, got, want)
						}
					}
				}
				if want := diffModels(tree, next); fmt.Sprint(refs) != fmt.Sprint(want) {
					t.Fatalf("step %d: RefreshInputs names %v, different are %v", step, refs, want)
				}
				tree = next
			}
		})
	}
}

// readRules is a Cleaner that puts what its files hold in front of all content, a file below src in front of what is there.
type readRules func(path string) string

func (r readRules) Rules() string { return r("rules") }

func (r readRules) Filter(p string) func([]byte) []byte {
	by := r("rules") + r(".gitattributes")
	if strings.HasPrefix(p, "src/") {
		by += r("src/.gitattributes")
	}
	return func(data []byte) []byte { return append([]byte(by), data...) }
}

// storedAsRulesSay opens a tree where what files hold depends on the files .gitattributes and rules.
func storedAsRulesSay(t *testing.T, dir string, anew bool) *Store {
	t.Helper()
	read := func(p string) string {
		data, err := os.ReadFile(filepath.Join(dir, p))
		if err != nil {
			return "none"
		}
		return string(data)
	}
	s, err := Open(dir, Options{Kinds: testKinds, Now: time.Now, NoCache: anew, Cleaner: readRules(read)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// TestNoInputs loads a tree for a caller that decides nothing: no input is read, also by a refresh, and the next store still knows them from the cache.
func TestNoInputs(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, map[string]string{"src/a.go": "a", "specs/s.yaml": sessionSpec, "specs/d.yaml": "apiVersion: " + schemas.APIVersion + "\nkind: DAG\nmetadata: {name: d}\nspec: {session: s, nodes: [{name: n0, run: [x], inputs: ['src/*.go']}]}\n"})
	ref, options := schemas.Ref{Kind: "DAG", Name: "d"}, Options{Kinds: testKinds, Now: time.Now, FileNow: time.Now}
	open := func(o Options) (*Store, *Tree) {
		s, err := Open(dir, o)
		if err != nil {
			t.Fatal(err)
		}
		return s, load(t, s)
	}
	s, tree := open(options)
	want := tree.Entry(ref).Inputs["n0"]
	if err := s.Close(); err != nil || want == "" {
		t.Fatal(want, err)
	}
	options.NoInputs = true
	s, tree = open(options)
	put(t, dir, map[string]string{"src/b.go": "b"})
	next, _, err := s.Refresh(t.Context(), tree, nil)
	if err != nil {
		t.Fatal(err)
	}
	if tree.Entry(ref).Inputs["n0"] != "" || next.Entry(ref).Inputs["n0"] != "" || s.HasInput("src/b.go") {
		t.Error("inputs were read")
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	options.NoInputs = false
	s, tree = open(options)
	defer s.Close()
	if got := tree.Entry(ref).Inputs["n0"]; got == want || got == "" {
		t.Errorf("%q of two files, %q of one", got, want)
	}
}
