package importer

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"reconcile.dev/reconcile/schemas"
)

// testKinds are the kinds that imported specs have.
var testKinds = schemas.Kinds{schemas.SessionKind, schemas.DAGKind}

// listing is what was found, a line each.
func listing(f Found) string {
	var b strings.Builder
	for _, c := range f.Commands {
		fmt.Fprintf(&b, "%s %q", c.Name, c.Run)
		for _, more := range []struct{ word, text string }{{"needs", strings.Join(c.Needs, " ")}, {"in", c.Dir}, {"held", c.Held},
			{"for", c.Description}} {
			if more.text != "" {
				fmt.Fprintf(&b, " %s %s", more.word, more.text)
			}
		}
		for _, name := range sortedKeys(c.Env) {
			fmt.Fprintf(&b, " %s=%q", name, c.Env[name])
		}
		if c.Minutes > 0 {
			fmt.Fprintf(&b, " %dm", c.Minutes)
		}
		fmt.Fprintf(&b, " (%s)\n", c.From)
	}
	for _, o := range f.Omitted {
		fmt.Fprintf(&b, "left out: %s: %s: %s\n", o.From, o.What, o.Why)
	}
	return b.String()
}

// TestFind reads testdata/*.txtar: the files of a project, and in "want" what is found. The comment begins with the source.
func TestFind(t *testing.T) {
	t.Parallel()
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatal(err)
	}
	for _, name := range archives {
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files := map[string][]byte{}
			var all []Source
			for _, f := range a.Files {
				files[f.Name] = f.Data
				if f.Name != "want" {
					all = append(all, Source{f.Name, f.Data})
				}
			}
			source, _, _ := strings.Cut(string(a.Comment), ":")
			found := parsed(t, source, all)
			if got := listing(found); got != string(files["want"]) {
				t.Errorf("got\n%swant\n%s", got, files["want"])
			}
			checkSpecs(t, source, found)
		})
	}
}

func parsed(t testing.TB, source string, files []Source) (f Found) {
	t.Helper()
	var err error
	switch source {
	case "make":
		f = Makefile(files[0].Path, files[0].Data)
	case "npm":
		f, err = npm(files[0].Path, files[0].Data)
	case "just":
		f = just(files[0].Path, files[0].Data, "linux")
	case "dump":
		f, err = justDump("justfile", files[0].Data)
	case "github":
		f, err = workflows(files)
	default:
		t.Fatalf("no source %q", source)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.settle()
	return f
}

// checkSpecs checks that what is written of the commands is valid, and says what was found.
func checkSpecs(t testing.TB, source string, f Found) {
	t.Helper()
	if len(f.Commands) == 0 {
		return
	}
	session, err := Session(source)
	if err != nil {
		t.Fatal(err)
	}
	dag, err := DAG(source, f)
	if err != nil {
		t.Fatal(err)
	}
	d := schemas.NewDecoder(testKinds, 1<<30)
	for _, src := range [][]byte{session, dag} {
		decoded := d.Decode("specs/x.yaml", src)
		for _, p := range decoded.Problems {
			t.Fatalf("%s: %s\n%s", p.Field, p.Message, src)
		}
		spec := schemas.SpecAs[*schemas.DAGSpec](decoded.Object)
		if spec == nil {
			continue
		}
		for i, c := range f.Commands {
			n := spec.Nodes[i]
			if n.Name != c.Name || !slices.Equal(n.Run, c.Run) || !slices.Equal(n.Needs, c.Needs) || n.WorkingDir != c.Dir {
				t.Fatalf("node %+v is not %+v\n%s", n, c, src)
			}
			for k, v := range c.Env {
				if n.Env[k].Text != v {
					t.Fatalf("node %s has %s=%q, not %q", n.Name, k, n.Env[k], v)
				}
			}
		}
	}
}

func FuzzMake(f *testing.F) {
	seed(f, "make")
	f.Fuzz(func(t *testing.T, src string) { fuzzOne(t, Makefile("Makefile", []byte(strings.ToValidUTF8(src, "")))) })
}

func FuzzJust(f *testing.F) {
	seed(f, "just")
	f.Fuzz(func(t *testing.T, src string) {
		fuzzOne(t, just("justfile", []byte(strings.ToValidUTF8(src, "")), "linux"))
	})
}

func FuzzWorkflow(f *testing.F) {
	seed(f, "github")
	f.Fuzz(func(t *testing.T, src string) {
		found, err := workflows([]Source{{".github/workflows/ci.yml", []byte(strings.ToValidUTF8(src, ""))}})
		if err == nil {
			fuzzOne(t, found)
		}
	})
}

func FuzzNPM(f *testing.F) {
	seed(f, "npm")
	f.Fuzz(func(t *testing.T, src string) {
		if found, err := npm("package.json", []byte(strings.ToValidUTF8(src, ""))); err == nil {
			fuzzOne(t, found)
		}
	})
}

func fuzzOne(t *testing.T, found Found) {
	found.settle()
	checkSpecs(t, "make", found)
}

func seed(f *testing.F, source string) {
	archives, err := filepath.Glob("testdata/" + source + "*.txtar")
	if err != nil || len(archives) == 0 {
		f.Fatal(err)
	}
	for _, name := range archives {
		a, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range a.Files {
			f.Add(string(file.Data))
		}
	}
}

func TestCyclesAndNames(t *testing.T) {
	t.Parallel()
	f := Found{Commands: []Command{{ID: "a", Name: "a-b", Needs: []string{"b", "a", "none", "b"}}, {ID: "b", Name: "a.b", Needs: []string{"c"}},
		{ID: "c", Name: "2x", Needs: []string{"a"}}, {ID: "d", Name: "übung"}, {ID: "e", Name: "…"},
		{ID: "f", Name: strings.Repeat("x", 80)}, {ID: "g", Name: strings.Repeat("x", 90)}}}
	f.settle()
	var got []string
	for _, c := range f.Commands {
		got = append(got, c.Name+":"+strings.Join(c.Needs, ","))
	}
	want := []string{"a_b:a_b_2", "a_b_2:n2x", "n2x:", "bung:", "command:", strings.Repeat("x", 63) + ":", strings.Repeat("x", 61) + "_2:"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestHeld(t *testing.T) {
	t.Parallel()
	for name, held := range map[string]bool{"test": false, "build:prod": false, "test:watch": true, "clean": true, "dist-clean": true, "start": true,
		"restart-tests": false, "release": true, "build-release": false, "docker-push": true, "run": true, "run-tests": false, "dev": true,
		"build-dev": false, "": false, "DEPLOY": true} {
		if (heldBecause(name) != "") != held {
			t.Errorf("%q: held is %v", name, !held)
		}
	}
}

// TestFindRefuses: what is no file of text is refused at once, and what is not there named.
func TestFindRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, source := range Sources {
		var nothing *NothingError
		if _, err := Find(context.Background(), dir, source); !errors.As(err, &nothing) || !strings.Contains(err.Error(), lookedFor[source]) {
			t.Errorf("%s in an empty folder: %v", source, err)
		}
	}
	outside := filepath.Join(t.TempDir(), "Makefile")
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	check(os.WriteFile(outside, []byte("all:\n"), 0o600))
	check(os.Symlink(outside, filepath.Join(dir, "Makefile")))
	check(os.Mkdir(filepath.Join(dir, "package.json"), 0o700))
	check(os.WriteFile(filepath.Join(dir, "justfile"), []byte("a:\n\xff\n"), 0o600))
	for source, want := range map[string]string{"make": "escapes", "npm": "no regular file", "just": "no text in UTF-8"} {
		if _, err := Find(context.Background(), dir, source); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", source, err, want)
		}
	}
}

func TestGoModules(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"go.mod": "module x\n", "tools/go.mod": "module x/tools\n", "tools/go.sum": "", "vendor/a/go.mod": "",
		"testdata/go.mod": "", ".x/go.mod": "", "a[1]/go.mod": "module x/a\n"} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	names := func() (names []string) {
		f, err := Find(context.Background(), dir, "go")
		if err != nil {
			t.Fatal(err)
		}
		checkSpecs(t, "go", f)
		for _, c := range f.Commands {
			names = append(names, fmt.Sprint(c.Name, c.Inputs))
		}
		return names
	}
	want := []string{"build[**/*.go go.mod]", "vet[**/*.go go.mod]", "test[**/*.go go.mod]",
		`a_1_build[a\[1\]/**/*.go a\[1\]/go.mod]`, `a_1_vet[a\[1\]/**/*.go a\[1\]/go.mod]`, `a_1_test[a\[1\]/**/*.go a\[1\]/go.mod]`,
		"tools_build[tools/**/*.go tools/go.mod tools/go.sum]", "tools_vet[tools/**/*.go tools/go.mod tools/go.sum]",
		"tools_test[tools/**/*.go tools/go.mod tools/go.sum]"}
	if got := names(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	work := "go 1.26\n\nuse ./tools // ours\nuse (\n\t./a[1]\n\t../out\n\t./none\n)\n"
	if err := os.WriteFile(filepath.Join(dir, "go.work"), []byte(work), 0o600); err != nil {
		t.Fatal(err)
	}
	want = append(slices.Clone(want[6:]), want[3:6]...)
	if got := names(); !slices.Equal(got, want) {
		t.Errorf("with go.work: got %q, want %q", got, want)
	}
}
