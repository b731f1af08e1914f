package source_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"reconcile.dev/reconcile/vectors/graph"
	"reconcile.dev/reconcile/vectors/source"
)

var update = flag.Bool("update", false, "rewrite what is expected")

// An archive has the files of a folder, a go.mod, tags as ctags prints them, and last what comes of them.
func TestGolden(t *testing.T) {
	t.Parallel()
	archives, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(archives) == 0 {
		t.Fatalf("no archives: %v", err)
	}
	for _, name := range archives {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			t.Parallel()
			golden(t, name)
		})
	}
}

func golden(t *testing.T, name string) {
	a, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	var files []source.File
	var mods source.Modules
	var tags []source.Tag
	want := &txtar.File{Name: "want"}
	kept := a.Files[:0]
	for _, f := range a.Files {
		switch {
		case f.Name == "want":
			want.Data = f.Data
			continue
		case f.Name == "tags":
			for line := range bytes.Lines(f.Data) {
				var tag source.Tag
				if err := json.Unmarshal(line, &tag); err != nil {
					t.Fatal(err)
				}
				tags = append(tags, tag)
			}
		case strings.HasSuffix(f.Name, "go.mod"):
			m, ok := source.ParseModule(source.File{Path: f.Name, Text: f.Data})
			if !ok {
				t.Fatalf("%s names no module", f.Name)
			}
			mods = append(mods, m)
		default:
			files = append(files, source.File{Path: f.Name, Text: f.Data})
		}
		kept = append(kept, f)
	}
	p := parse(files, mods, tags)
	check(t, files, p)
	for n := range 3 {
		rand.New(rand.NewPCG(uint64(n), 1)).Shuffle(len(files), func(i, j int) { files[i], files[j] = files[j], files[i] })
		if again := parse(files, mods, tags); !reflect.DeepEqual(p, again) {
			t.Error("another order of the files makes another part")
		}
	}
	got := []byte(show(p))
	if *update {
		a.Files = append(kept, txtar.File{Name: "want", Data: got})
		if err := os.WriteFile(name, txtar.Format(a), 0o666); err != nil {
			t.Fatal(err)
		}
	} else if !bytes.Equal(got, want.Data) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want.Data)
	}
}

// parse makes a part as the index does: of Go by folder, else of the one file.
func parse(files []source.File, mods source.Modules, tags []source.Tag) graph.Part {
	switch p := files[0].Path; {
	case strings.HasSuffix(p, ".go"):
		return goPart(source.ParseGo(files, 1), mods, 1)
	case source.IsMarkdown(p):
		return source.Markdown(files[0])
	}
	return source.Tagged(files[0], tags)
}

// goPart puts the package and its files together. Packages of others that several import are there once.
func goPart(f *source.GoFolder, mods source.Modules, threads int) graph.Part {
	all := f.Package()
	parts, _ := f.Parts(nil, mods, threads)
	there := map[string]bool{}
	for _, p := range parts {
		for _, it := range p.Items {
			if !there[it.ID] || it.Type != graph.Import {
				all.Items = append(all.Items, it)
			}
			there[it.ID] = true
		}
		all.Edges = append(all.Edges, p.Edges...)
	}
	return all
}

func show(p graph.Part) string {
	var b strings.Builder
	for _, it := range p.Items {
		fmt.Fprintf(&b, "%s %s %q %d-%d %v\n  %s\n", it.ID, it.Type, it.Name, it.Line, it.End, it.Labels, it.Title)
		for line := range strings.Lines(it.Body) {
			b.WriteString("  | " + strings.ToValidUTF8(strings.TrimRight(line, "\r\n"), "?") + "\n")
		}
	}
	for _, e := range p.Edges {
		fmt.Fprintf(&b, "%s %s %s\n", e.From, e.Type, e.To)
	}
	return b.String()
}

// check holds what every part promises.
func check(t *testing.T, files []source.File, p graph.Part) {
	t.Helper()
	lines := map[string]int{}
	for _, f := range files {
		lines[f.Path] = bytes.Count(f.Text, []byte("\n")) + 1
	}
	ids := map[string]bool{}
	for i := range p.Items {
		it := &p.Items[i]
		if err := graph.CheckNode(&it.Node); err != nil {
			t.Error(err)
		}
		if ids[it.ID] {
			t.Errorf("%q is there twice", it.ID)
		}
		ids[it.ID] = true
		if n, ok := lines[it.Path]; ok && (it.Line < 1 || it.End < it.Line || it.End > n) {
			t.Errorf("%q is in lines %d to %d of %d", it.ID, it.Line, it.End, n)
		}
		if len(it.Body) > graph.MaxBody+3 || it.Digest == 0 {
			t.Errorf("%q has a text of %d bytes, digest %x", it.ID, len(it.Body), it.Digest)
		}
	}
	seen := map[graph.Edge]bool{}
	for _, e := range p.Edges {
		if !ids[e.From] && !source.IsAlias(e.From) || seen[e] || e.To == "" {
			t.Errorf("edge %+v is of no node here, leads nowhere, or is there twice", e)
		}
		seen[e] = true
	}
}

// Texts that nobody would write are indexed as far as they can be.
func TestOddTexts(t *testing.T) {
	t.Parallel()
	texts := map[string]string{
		"empty": "", "newline": "\n", "no end": "package p", "crlf": "package p\r\n\r\nfunc F() {\r\n}\r\n",
		"bytes": "package p\n\nfunc F\xff() { \xfe }\n", "long line": "package p\nvar x = `" + strings.Repeat("y", 1<<20) + "`\n",
		"no package": "func F() {}\n", "line directive": "package p\n//line other.go:9000\nfunc F() {}\n",
		"deep":    "package p\nvar x = " + strings.Repeat("(", 5000) + "1" + strings.Repeat(")", 5000) + "\n",
		"heading": "# \n\n#\n\n## x\n# x\nx\n===\n", "fence": "```\n# no\n", "nul": "a\x00b",
	}
	for name, text := range texts {
		for _, p := range []string{"d/a.go", "a.md", "a.txt"} {
			files := []source.File{{Path: p, Text: []byte(text)}}
			part := parse(files, nil, nil)
			if len(part.Items) == 0 {
				t.Errorf("%s as %s comes to nothing", name, p)
			}
			check(t, files, part)
		}
	}
}

// TestBrokenGo: all words of a Go file with errors of syntax are found, also behind the place where the parser gives up.
func TestBrokenGo(t *testing.T) {
	t.Parallel()
	text := "package p\n\nfunc Open( {\n// zebra\n" + strings.Repeat("func (\n", 20) + "// ostrich\nfunc Close() {}\n"
	part := parse([]source.File{{Path: "p/p.go", Text: []byte(text)}}, nil, nil)
	var all strings.Builder
	for _, it := range part.Items {
		all.WriteString(it.Body)
	}
	for _, word := range []string{"zebra", "ostrich", "Close"} {
		if !strings.Contains(all.String(), word) {
			t.Errorf("%s is in no text", word)
		}
	}
}

func FuzzParts(f *testing.F) {
	archives, _ := filepath.Glob("testdata/*.txtar")
	for _, name := range archives {
		a, err := txtar.ParseFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range a.Files {
			f.Add(file.Data, "F", 3, 9)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, name string, line, end int) {
		bare := source.ParseGo([]source.File{{Path: "d/a.go", Text: text, Declares: true}, {Path: "d/b.go", Text: text}}, 1)
		bare.Declared()
		if c := bare.Contexts(1); c[0] != (source.Context{}) {
			t.Errorf("a file that is only asked what it declares has a context: %v", c)
		}
		for _, p := range []string{"d/a.go", "a.md", "a.txt"} {
			files := []source.File{{Path: p, Text: text}}
			tags := []source.Tag{{Name: name, Line: line, End: end, Kind: "class"}, {Name: "x", Line: end, Kind: "method", Scope: name}}
			check(t, files, parse(files, source.Modules{{Path: "example.com/m"}}, tags))
		}
	})
}

func TestModules(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"module example.com/m\n": "example.com/m", "// x\nmodule \"example.com/m\" // y\n": "example.com/m",
		"\tmodule\texample.com/m\n": "example.com/m", "go 1.26\n": "", "": "", "modulex y\n": "",
	} {
		if m, ok := source.ParseModule(source.File{Path: "sub/go.mod", Text: []byte(text)}); m.Path != want || ok != (want != "") ||
			ok && m.Dir != "sub" {
			t.Errorf("%q: %+v, %t", text, m, ok)
		}
	}
	mods := source.Modules{{Path: "example.com/m"}, {Path: "example.com/m/tools", Dir: "tools"}, {Path: "other.org/x", Dir: "x"}}
	for importPath, want := range map[string]string{
		"example.com/m": "./", "example.com/m/state": "state/", "example.com/m/tools": "tools/", "example.com/m/tools/a": "tools/a/",
		"example.com/more": "", "other.org/x/y": "x/y/", "fmt": "", "example.com": "",
	} {
		if id, ok := mods.Folder(importPath); id != want || ok != (want != "") {
			t.Errorf("%s is %q, %t; want %q", importPath, id, ok, want)
		}
	}
	std, ok := source.ParseModule(source.File{Path: "go.mod", Text: []byte("module std\n")})
	if id, ours := (source.Modules{std}).Folder("net/http"); !ok || !ours || id != "net/http/" {
		t.Errorf("net/http of the standard library is %q", id)
	}
}

func TestAlias(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]string{
		"state/tree.go:Tree.Entry": "state/:Tree.Entry", "a.go:F": "./:F", "a.go:init~2": "", "a.go": "", "import:fmt": "", "state/:F": "",
		"a.go:": "",
	} {
		if alias, ok := source.Alias(id); alias != want || ok != (want != "") || ok && !source.IsAlias(alias) {
			t.Errorf("%s is called %q, %t; want %q", id, alias, ok, want)
		}
	}
}

// TestThreads: what a folder comes to does not depend on how many goroutines checked which of its functions.
func TestThreads(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"go/types", "strings", "os"} {
		files := goFolder(t, dir)
		mods := source.Modules{{Path: "", Dir: ""}}
		want := goPart(source.ParseGo(files, 1), mods, 1)
		if len(want.Edges) < 500 {
			t.Errorf("%s has %d edges only", dir, len(want.Edges))
		}
		for _, threads := range []int{2, 5} {
			if got := goPart(source.ParseGo(files, threads), mods, threads); !reflect.DeepEqual(got, want) {
				t.Errorf("%s comes to something else with %d goroutines: %d items and %d edges, want %d and %d", dir, threads,
					len(got.Items), len(got.Edges), len(want.Items), len(want.Edges))
			}
		}
	}
}
