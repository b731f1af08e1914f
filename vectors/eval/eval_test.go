package eval_test

import (
	"errors"
	"fmt"
	"go/build"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"reconcile.dev/reconcile/vectors"
	"reconcile.dev/reconcile/vectors/eval"
	"reconcile.dev/reconcile/vectors/source"
)

// library is the index of Go's standard library, without its commands, and its functions; of the folders that begin with
// one of these, if there are any.
func library(t testing.TB, folders ...string) (*vectors.Index, []eval.Function) {
	t.Helper()
	var functions []eval.Function
	var files []source.File
	tree := os.DirFS(filepath.Join(build.Default.GOROOT, "src"))
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "cmd" || name == "vendor" || d.Name() == "testdata"):
			return fs.SkipDir
		case d.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		case len(folders) > 0 && !slices.ContainsFunc(folders, func(f string) bool { return strings.HasPrefix(name, f) }):
			return nil
		}
		text, err := fs.ReadFile(tree, name)
		file, found := eval.Cut(source.File{Path: name, Text: text})
		files, functions = append(files, file), append(functions, found...)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) && os.Getenv("CI") == "" { // packages of Go may come without it
		t.Skip("Go's own source is not here:", err)
	}
	if err != nil || len(functions) == 0 {
		t.Fatalf("%d functions of Go's own source: %v", len(functions), err)
	}
	x, err := eval.Index(t.Context(), files, source.Modules{{}}, vectors.Options{Dims: 768})
	if err != nil {
		t.Fatal(err)
	}
	return x, functions
}

func figures(t testing.TB, x *vectors.Index, functions []eval.Function, asked []int, named bool, mode vectors.Mode) eval.Figures {
	t.Helper()
	f, err := eval.Measure(functions, asked, named, eval.By(t.Context(), x, mode))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// BenchmarkStandardLibrary reports how well functions are found, with and without their names in the question.
func BenchmarkStandardLibrary(b *testing.B) {
	x, functions := library(b)
	asked := eval.Asked(functions, 0)
	for _, mode := range []vectors.Mode{vectors.Lexical, vectors.Vector, vectors.Hybrid} {
		for _, named := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/named=%v", mode, named), func(b *testing.B) {
				for b.Loop() {
					f := figures(b, x, functions, asked, named, mode)
					b.ReportMetric(f.MRR, "MRR@10")
					b.ReportMetric(f.Recall, "recall@10")
					b.ReportMetric(float64(f.Questions), "questions")
				}
			})
		}
	}
}

const program = `// Package p is here.
package p

import "io"

// Box holds things.
type Box[T any] struct{ things []T }

// Open opens the box that p.Open has not opened yet, e.g. one by J. Doe. It says
// why not.
//
// There is more.
func Open(name string, mode int) (*Box[int], error) {
	// A comment of the code.
	return nil, io.EOF
}

// Len counts things in the box
// without looking.
func (b *Box[T]) Len() int { return len(b.things) }

// hidden says what nobody asks for.
func hidden() {}

// Close closes it.
func (b Box[T]) Close() error { return nil }

func Bare()
`

func TestCut(t *testing.T) {
	t.Parallel()
	file, got := eval.Cut(source.File{Path: "dir/p.go", Text: []byte(program)})
	want := []eval.Function{
		{ID: "dir/:Open", Question: "opens the box that has not opened yet, e.g. one by J. Doe.",
			Named: "Open opens the box that p.Open has not opened yet, e.g. one by J. Doe."},
		{ID: "dir/:Box.Len", Question: "counts things in the box without looking.", Named: "Len counts things in the box without looking."},
		{ID: "dir/:hidden"}, {ID: "dir/:Box.Close"}, {ID: "dir/:Bare"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	cut := strings.NewReplacer(
		"// Open opens the box that p.Open has not opened yet, e.g. one by J. Doe. It says\n// why not.\n//\n// There is more.\n",
		"// It says why not.\n// There is more.\n",
		"// Len counts things in the box\n// without looking.\n", "\n",
		"// hidden says what nobody asks for.\n", "\n",
		"// Close closes it.\n", "\n",
	).Replace(program)
	if string(file.Text) != cut || file.Path != "dir/p.go" {
		t.Errorf("what is left is\n%s\nwant\n%s", file.Text, cut)
	}
}

func TestCutBrokenFiles(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]int{
		"":                                0,
		"no Go at all":                    0,
		"package p\nfunc F() {":           1,
		"package p\nfunc F() {}\nfunc (":  1,
		"package p\nfunc (x) F()\n}\x00{": 1,
	} {
		file, got := eval.Cut(source.File{Path: "p.go", Text: []byte(src)})
		if len(got) < want || string(file.Text) != src {
			t.Errorf("%q: %d functions, want %d, of %q", src, len(got), want, file.Text)
		}
	}
}

func FuzzCut(f *testing.F) {
	f.Add(program)
	f.Add("package p\n// a\n//line x:9\nfunc F() {")
	f.Fuzz(func(t *testing.T, src string) {
		file, functions := eval.Cut(source.File{Path: "p.go", Text: []byte(src)})
		for _, f := range functions {
			if f.Question != "" && f.Named == "" {
				t.Errorf("%q", f)
			}
		}
		if len(functions) == 0 && string(file.Text) != src {
			t.Errorf("%q without functions became %q", src, file.Text)
		}
	})
}

// TestAsked: no questions that several functions have, one for the variants of a function.
func TestAsked(t *testing.T) {
	t.Parallel()
	functions := []eval.Function{
		{ID: "a", Question: "same"}, {ID: "b", Question: "same"}, {ID: "c"}, {ID: "d", Question: "own"}, {ID: "d", Question: "own"},
		{ID: "e", Question: "another"},
	}
	got := eval.Asked(functions, 0)
	slices.Sort(got)
	if !slices.Equal(got, []int{3, 5}) {
		t.Errorf("got %v", got)
	}
	if got := eval.Asked(functions, 1); len(got) != 1 {
		t.Errorf("got %v", got)
	}
}

func TestMeasure(t *testing.T) {
	t.Parallel()
	functions := []eval.Function{{ID: "a", Question: "1", Named: "x"}, {ID: "b", Question: "2"}, {ID: "c", Question: "3"},
		{ID: "a", Question: "other"}}
	asked := []int{0, 1, 2}
	ranker := func(question string, _ int) ([]string, error) {
		// a by its other variant at the second place, b at the first, c never.
		return map[string][]string{"1": {"c", "a", "b", "a"}, "2": {"b", "a"}, "3": {"a", "b"}, "x": {"a"}}[question], nil
	}
	got, err := eval.Measure(functions, asked, false, ranker)
	if want := (eval.Figures{Questions: 3, MRR: 0.5, Recall: 2.0 / 3}); err != nil || got != want {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	if got, err := eval.Measure(functions, asked[:1], true, ranker); err != nil || got.MRR != 1 {
		t.Errorf("by its name: %v, %v", got, err)
	}
	broken := errors.New("broken")
	if _, err := eval.Measure(functions, asked, false, func(string, int) ([]string, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if got, err := eval.Measure(nil, nil, false, ranker); err != nil || got != (eval.Figures{}) {
		t.Errorf("nothing: %v, %v", got, err)
	}
}

// TestHybridBeatsLexical on a part of the standard library: what benchmarks report of the whole.
func TestHybridBeatsLexical(t *testing.T) {
	t.Parallel()
	x, functions := library(t, "bufio", "bytes", "encoding/json", "net/http/", "os/", "sort", "strings", "time")
	asked := eval.Asked(functions, 400)
	words := figures(t, x, functions, asked, false, vectors.Lexical)
	meaning := figures(t, x, functions, asked, false, vectors.Vector)
	both := figures(t, x, functions, asked, false, vectors.Hybrid)
	if words.Questions < 300 || both.MRR < words.MRR+0.02 || both.Recall < words.Recall+0.01 ||
		both.MRR < meaning.MRR-0.02 || both.Recall < meaning.Recall {
		t.Errorf("by words %+v, by vectors %+v, by both %+v", words, meaning, both)
	}
	t.Logf("%d functions; by words %+v, by vectors %+v, by both %+v", len(functions), words, meaning, both)
}
