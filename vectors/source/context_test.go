package source_test

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"reconcile.dev/reconcile/vectors/graph"
	"reconcile.dev/reconcile/vectors/source"
)

// goFolder is a folder of Go's own source.
func goFolder(t *testing.T, dir string) []source.File {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(build.Default.GOROOT, "src", dir, "*.go"))
	if err == nil && len(paths) == 0 && os.Getenv("CI") == "" { // packages of Go may come without it
		t.Skip("Go's own source is not here:", dir)
	}
	if err != nil || len(paths) < 5 {
		t.Fatalf("%d files of %s: %v", len(paths), dir, err)
	}
	var files []source.File
	for _, p := range paths {
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, source.File{Path: dir + "/" + filepath.Base(p), Text: text})
	}
	return files
}

// TestContexts changes declarations and bodies at random, and looks whether every file that comes to something else has
// another text or another context; and what a file comes to when others are not wanted.
func TestContexts(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"strings", "os", "sort", "go/ast"} {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			files := goFolder(t, dir)
			was := lookInto(t, files)
			if was.cut > 0 {
				t.Error("without bodies the files declare something else")
			}
			rounds, spared := 30, 0
			if testing.Short() {
				rounds = 5
			}
			for round := range rounds {
				spared += was.compare(t, lookInto(t, mutated(t, files, rand.New(rand.NewPCG(uint64(round), 5)))))
			}
			if least := rounds * len(files) / 5; spared < least {
				t.Errorf("%d files had not to be looked into again, want at least %d", spared, least)
			}
		})
	}
}

type lookedInto struct {
	files    []source.File
	contexts []source.Context
	parts    []graph.Part
	settled  bool
	cut      int // times that files without bodies declared something else
}

func lookInto(t *testing.T, files []source.File) *lookedInto {
	t.Helper()
	mods := source.Modules{{}}
	f := source.ParseGo(files, 1)
	l := &lookedInto{files: files, contexts: f.Contexts(2)}
	l.parts, l.settled = f.Parts(nil, mods, 1)
	l.compareSome(t, f, mods)
	return l
}

// compareSome looks into some files only: when others are not wanted, and when of others only is read what they declare.
func (l *lookedInto) compareSome(t *testing.T, f *source.GoFolder, mods source.Modules) {
	t.Helper()
	some, bare := make([]bool, len(l.files)), slices.Clone(l.files)
	for i := range some {
		some[i] = i%5 == len(l.files[0].Text)%5
		bare[i].Declares = !some[i]
	}
	less := source.ParseGo(bare, 2)
	parts, _ := f.Parts(some, mods, 2)
	lessParts, _ := less.Parts(nil, mods, 1)
	contexts, same := less.Contexts(1), less.Declared() == f.Declared()
	if !same {
		l.cut++
	}
	for i := range some {
		if !some[i] {
			continue
		}
		if !reflect.DeepEqual(parts[i], l.parts[i]) {
			t.Errorf("%s comes to something else by itself", l.files[i].Path)
		}
		if same && (contexts[i] != l.contexts[i] || !reflect.DeepEqual(lessParts[i], l.parts[i])) {
			t.Errorf("%s comes to something else where others have no bodies", l.files[i].Path)
		}
	}
}

func (l *lookedInto) compare(t *testing.T, now *lookedInto) (spared int) {
	t.Helper()
	for i := range l.files {
		if string(l.files[i].Text) != string(now.files[i].Text) || l.contexts[i].Declared != now.contexts[i].Declared {
			continue
		}
		spared++
		if l.settled && now.settled && !reflect.DeepEqual(l.parts[i], now.parts[i]) {
			t.Errorf("%s comes to something else, of the same text in the same context", l.files[i].Path)
		}
	}
	return spared
}

// mutated changes one declaration: its name, or its type, or its body, or where it is, or takes it away.
func mutated(t *testing.T, files []source.File, r *rand.Rand) []source.File {
	t.Helper()
	out := append([]source.File(nil), files...)
	for {
		at := r.IntN(len(out))
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, out[at].Path, out[at].Text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Decls) == 0 {
			continue
		}
		d := f.Decls[r.IntN(len(f.Decls))]
		if text := change(d, string(out[at].Text), r); text != string(out[at].Text) {
			out[at].Text = []byte(text)
			return out
		}
	}
}

func change(d ast.Decl, text string, r *rand.Rand) string {
	from, to := int(d.Pos())-1, int(d.End())-1
	switch d := d.(type) {
	case *ast.FuncDecl:
		name, end := int(d.Name.Pos())-1, int(d.Name.End())-1
		switch r.IntN(5) {
		case 0:
			return text[:name] + "Renamed" + text[name:]
		case 1:
			return text[:end] + "(x int) map[string]error { return nil }\n\nfunc other" + text[end:]
		case 2:
			return text[:from] + text[to:]
		case 3:
			return text + "\nfunc " + d.Name.Name + "() {}\n"
		}
		if d.Body != nil {
			return text[:d.Body.Lbrace] + "\n\tpanic(len(\"changed\"))\n" + text[d.Body.Lbrace:]
		}
	case *ast.GenDecl:
		switch s := d.Specs[r.IntN(len(d.Specs))].(type) {
		case *ast.TypeSpec:
			name := int(s.Name.End()) - 1
			return text[:name] + []string{" struct{ Other }\n\ntype x", " = interface{ Close() error }\n\ntype x", " map[string]int\n\ntype x"}[r.IntN(3)] + text[name:]
		case *ast.ValueSpec:
			return text[:from] + fmt.Sprintf("func %s() error { return nil }", s.Names[0].Name) + text[to:]
		}
	}
	return text
}

// TestContextsTell: what a file comes to changes with another file, so its context must.
func TestContextsTell(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, before, after string }{
		"a function that was not there": {"func F() { G() }", "", "func G() {}"},
		"a function in another file":    {"func F() { open() }", "func open() {}", "func other() {}"},
		"the type of a result": {
			"func F() { make1().Do() }", "func make1() A { return A{} }\ntype A struct{}\nfunc (A) Do() {}\ntype B struct{}\nfunc (B) Do() {}",
			"func make1() B { return B{} }\ntype A struct{}\nfunc (A) Do() {}\ntype B struct{}\nfunc (B) Do() {}",
		},
		"what a type that is not named embeds": {
			"func F() { v.Do() }", "var v = T{}\ntype T struct{ A }\ntype A struct{}\nfunc (A) Do() {}\ntype B struct{}\nfunc (B) Do() {}",
			"var v = T{}\ntype T struct{ B }\ntype A struct{}\nfunc (A) Do() {}\ntype B struct{}\nfunc (B) Do() {}",
		},
		"a method of a type of here":   {"type T struct{}\n\nfunc F() { T{}.Do() }", "", "func (T) Do() {}"},
		"an interface":                 {"type T struct{}\n\nfunc (T) Do() {}", "", "type Doer interface{ Do() }"},
		"an interface by another name": {"type T struct{}\n\nfunc (T) Do() {}", "type X interface{ Do() }", "type X interface{ Do() }\ntype Y X"},
		"what an interface asks for":   {"type T struct{}\n\nfunc (T) Do() {}", "type Doer interface{ Do(); Undo() }", "type Doer interface{ Do() }"},
		"the type of a constant that only counts": {
			"func F() { B.Do() }", "const (\n\tA T = iota\n\tB\n)\ntype T int\nfunc (T) Do() {}\ntype U int\nfunc (U) Do() {}",
			"const (\n\tA U = iota\n\tB\n)\ntype T int\nfunc (T) Do() {}\ntype U int\nfunc (U) Do() {}",
		},
		"a name that stands for several": {"func F() { G() }", "var G, H = 1, func() {}", "func G() {}"},
		"the package that a name is of":  {"func F() { f().Do() }\ntype T struct{}\nfunc (T) Do() {}", "import f2 \"x\"\n\nfunc f() T { return f2.X }", "import T \"x\"\n\nfunc f() T { return T.X }"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			look := func(other string) *lookedInto {
				return lookInto(t, []source.File{
					{Path: "p/a.go", Text: []byte("package p\n\n" + c.text + "\n")}, {Path: "p/b.go", Text: []byte("package p\n\n" + other + "\n")},
				})
			}
			before, after := look(c.before), look(c.after)
			if before.contexts[0].Declared == after.contexts[0].Declared {
				t.Error("the context is the same")
			}
			if reflect.DeepEqual(before.parts[0], after.parts[0]) {
				t.Errorf("the file comes to the same: %+v", after.parts[0].Edges)
			}
		})
	}
}

// TestBodiesLeftOut: what is cut where no body is shows in what is declared.
func TestBodiesLeftOut(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		text string
		same bool
	}{
		"bodies":                 {"func F() {\n\tG()\n}\n\nfunc G() {}\n\nfunc (t T) H(\n\ta int,\n) error {\n\treturn nil\n}\n\ntype T int\n", true},
		"a literal":              {"var f = func() {\n\tG()\n}\n\nfunc G() {\n}\n", true},
		"a raw string":           {"func F() {\n\tx := `\n}\n`\n}\n\nfunc G() {}\n", true},
		"no end":                 {"func F() {\n\tG()\n\nfunc G() {\n}\n", true},
		"an interface":           {"func F() interface {\n\tDo()\n} {\n\treturn nil\n}\n\nfunc G() {}\n", true},
		"two in one":             {"func F() { for {\n\tG()\n}\n}\n\nfunc G() {}\n", false},
		"a raw declaration":      {"var x = `\nfunc F() {\n\tG()\n}\n`\n", true},
		"an interface of a line": {"func F() interface {\n\tDo()\n}\n\nfunc G() {}\n", false},
		"comments":               {"func F() { // {\n\tG() /* }\n}\n */\n\t_ = '\"'\n\t_ = \"\\\"`\"\n}\n\n// func\nfunc G() {}\n", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := source.File{Path: "p/a.go", Text: []byte("package p\n\n" + c.text)}
			all := source.ParseGo([]source.File{file}, 1)
			file.Declares = true
			if same := all.Declared() == source.ParseGo([]source.File{file}, 1).Declared(); same != c.same {
				t.Errorf("what is declared is the same: %t, want %t", same, c.same)
			}
		})
	}
}

// TestContextsSpare: what has nothing to do with a file leaves its context alone.
func TestContextsSpare(t *testing.T) {
	t.Parallel()
	look := func(other string) source.Context {
		return source.ParseGo([]source.File{
			{Path: "p/a.go", Text: []byte("package p\n\nfunc F() { G() }\n")}, {Path: "p/b.go", Text: []byte("package p\n\n" + other)},
		}, 1).Contexts(1)[0]
	}
	want := look("func G() { print(1) }\n")
	for _, other := range []string{
		"func G() { print(2); H() }\n\nfunc H() {}\n", "// G is documented.\nfunc G() {}\n", "func init() {}\n\nfunc G() {}\n\ntype T struct{}\n",
	} {
		if got := look(other); got != want {
			t.Errorf("%q changes the context", other)
		}
	}
}
