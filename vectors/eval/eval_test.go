package eval_test

import (
	"context"
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

	"reconcile.dev/reconcile/vectors/embed"
	"reconcile.dev/reconcile/vectors/eval"
)

// library lists the functions of Go's standard library, without its commands; of the folders that begin with one of
// these, if there are any.
func library(t testing.TB, folders ...string) []eval.Function {
	t.Helper()
	var out []eval.Function
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
		src, err := fs.ReadFile(tree, name)
		out = append(out, eval.Functions(name, src)...)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) && os.Getenv("CI") == "" { // packages of Go may come without it
		t.Skip("Go's own source is not here:", err)
	}
	if err != nil || len(out) == 0 {
		t.Fatalf("%d functions of Go's own source: %v", len(out), err)
	}
	return out
}

// rankers are those that are compared.
func rankers(t testing.TB, functions []eval.Function) (lexical, vector eval.Ranker) {
	t.Helper()
	texts := func(yield func(string) bool) {
		for _, f := range functions {
			if !yield(embed.Text(f.Title, f.Body)) {
				return
			}
		}
	}
	lexical, err := eval.Lexical(functions)
	if err != nil {
		t.Fatal(err)
	}
	vector, err = eval.Vector(context.Background(), functions, embed.Train(texts, 768))
	if err != nil {
		t.Fatal(err)
	}
	return lexical, vector
}

func figures(t testing.TB, functions []eval.Function, asked []int, named bool, rank eval.Ranker) eval.Figures {
	t.Helper()
	f, err := eval.Measure(functions, asked, named, rank)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// BenchmarkStandardLibrary reports how well functions are found, with and without their names in the question.
func BenchmarkStandardLibrary(b *testing.B) {
	functions := library(b)
	lexical, vector := rankers(b, functions)
	asked := eval.Asked(functions, 0)
	for name, rank := range map[string]eval.Ranker{"lexical": lexical, "vector": vector, "hybrid": eval.Fuse(lexical, vector)} {
		for _, named := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/named=%v", name, named), func(b *testing.B) {
				for b.Loop() {
					f := figures(b, functions, asked, named, rank)
					b.ReportMetric(f.MRR, "MRR@10")
					b.ReportMetric(f.Recall, "recall@10")
					b.ReportMetric(float64(f.Questions), "questions")
				}
			})
		}
	}
}

const source = `// Package p is here.
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

func TestFunctions(t *testing.T) {
	t.Parallel()
	got := eval.Functions("dir/p.go", []byte(source))
	want := []eval.Function{
		{ID: "dir.Open", Title: "p.Open (name string, mode int) (*Box[int], error)",
			Body:     "It says why not.\nThere is more.\n\n{\n\t// A comment of the code.\n\treturn nil, io.EOF\n}",
			Question: "opens the box that has not opened yet, e.g. one by J. Doe.",
			Named:    "Open opens the box that p.Open has not opened yet, e.g. one by J. Doe."},
		{ID: "dir.Box.Len", Title: "p.Box.Len () int", Body: "{ return len(b.things) }",
			Question: "counts things in the box without looking.", Named: "Len counts things in the box without looking."},
		{ID: "dir.hidden", Title: "p.hidden ()", Body: "{}"},
		{ID: "dir.Box.Close", Title: "p.Box.Close () error", Body: "{ return nil }"},
		{ID: "dir.Bare", Title: "p.Bare ()"},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestFunctionsOfBrokenFiles(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]int{
		"":                                0,
		"no Go at all":                    0,
		"package p\nfunc F() {":           1,
		"package p\nfunc F() {}\nfunc (":  1,
		"package p\nfunc (x) F()\n}\x00{": 1,
	} {
		if got := eval.Functions("p.go", []byte(src)); len(got) < want {
			t.Errorf("%q: %d functions, want %d", src, len(got), want)
		}
	}
}

func FuzzFunctions(f *testing.F) {
	f.Add(source)
	f.Add("package p\n// a\n//line x:9\nfunc F() {")
	f.Fuzz(func(t *testing.T, src string) {
		for _, f := range eval.Functions("p.go", []byte(src)) {
			if f.Question != "" && f.Named == "" || len(f.Body) > len(src)+2 {
				t.Errorf("%q", f)
			}
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
	ranker := func(question string, _ int) ([]int, error) {
		// a by its other variant at the second place, b at the first, c never.
		return map[string][]int{"1": {2, 3, 1, 0}, "2": {1, 0}, "3": {0, 1}, "x": {0}}[question], nil
	}
	got, err := eval.Measure(functions, asked, false, ranker)
	if want := (eval.Figures{Questions: 3, MRR: 0.5, Recall: 2.0 / 3}); err != nil || got != want {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	if got, err := eval.Measure(functions, asked[:1], true, ranker); err != nil || got.MRR != 1 {
		t.Errorf("by its name: %v, %v", got, err)
	}
	broken := errors.New("broken")
	if _, err := eval.Measure(functions, asked, false, func(string, int) ([]int, error) { return nil, broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	if got, err := eval.Measure(nil, nil, false, ranker); err != nil || got != (eval.Figures{}) {
		t.Errorf("nothing: %v, %v", got, err)
	}
}

func TestFuse(t *testing.T) {
	t.Parallel()
	list := func(hits ...int) eval.Ranker { return func(string, int) ([]int, error) { return hits, nil } }
	got, err := eval.Fuse(list(4, 1, 2), list(2, 3, 1))("", 10)
	if want := []int{2, 1, 4, 3}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	if got, err := eval.Fuse(list(5, 4), list(4, 5))("", 1); err != nil || !slices.Equal(got, []int{4}) {
		t.Errorf("a tie: %v, %v", got, err)
	}
}

// TestHybridBeatsLexical on a part of the standard library: what benchmarks report of the whole.
func TestHybridBeatsLexical(t *testing.T) {
	t.Parallel()
	functions := library(t, "bufio", "bytes", "encoding/json", "net/http/", "os/", "sort", "strings", "time")
	lexical, vector := rankers(t, functions)
	asked := eval.Asked(functions, 400)
	words := figures(t, functions, asked, false, lexical)
	both := figures(t, functions, asked, false, eval.Fuse(lexical, vector))
	if words.Questions < 300 || both.MRR < words.MRR+0.02 || both.Recall < words.Recall+0.01 {
		t.Errorf("by words %+v, by both %+v", words, both)
	}
	t.Logf("%d functions; by words %+v, by both %+v", len(functions), words, both)
}
