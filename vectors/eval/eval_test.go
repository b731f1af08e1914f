package eval_test

import (
	"context"
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
	if err != nil || len(out) == 0 {
		t.Skip("Go's own source is not here:", err)
	}
	return out
}

// rankers are those that are compared.
func rankers(t testing.TB, functions []eval.Function) (lexical, vector eval.Ranker) {
	t.Helper()
	texts := func(yield func(string) bool) {
		for _, f := range functions {
			if !yield(f.Title + "\n" + f.Body) {
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
