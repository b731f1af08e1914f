package main

import (
	"context"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/vectors/embed"
	"reconcile.dev/reconcile/vectors/eval"
)

// evalFlags are the flags of search eval.
type evalFlags struct{ questions int }

const searchEvalLong = `Measure how well functions are found by what they do, on the Go code below a folder: the first sentence of an exported
function's doc comment, without the function's name, is the question, and is taken out of what is indexed; the function
is the answer.

Printed are MRR@10 (the mean of 1/rank of the answer) and recall@10 (how often it is among the first ten), by words, by
vectors, and by both. Tests and testdata are left out.`

func newSearchEvalCmd(a *app) *cobra.Command {
	o := &evalFlags{}
	cmd := &cobra.Command{
		Use:     "eval [DIR]",
		Short:   "Measure how well functions are found by what they do",
		Long:    searchEvalLong,
		Example: "  reconcile search eval\n  reconcile search eval $(go env GOROOT)/src --questions 2000",
		Args:    arguments(0, 1, "a folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := a.global.dir
			if len(args) == 1 {
				dir = args[0]
			}
			return a.searchEval(cmd.Context(), dir, *o)
		},
	}
	cmd.Flags().IntVar(&o.questions, "questions", 0, "ask `N` questions, chosen by the names of the functions; 0 asks all")
	return cmd
}

// evaluated is what -o json prints.
type evaluated struct {
	Folder    string      `json:"folder"`
	Files     int         `json:"files"`
	Functions int         `json:"functions"`
	Questions int         `json:"questions"`
	Rankings  []evalEntry `json:"rankings"`
}

type evalEntry struct {
	By       string  `json:"by"`
	MRR10    float64 `json:"mrr10"`
	Recall10 float64 `json:"recall10"`
}

func (a *app) searchEval(ctx context.Context, dir string, o evalFlags) error {
	if o.questions < 0 {
		return badUsage("--questions %d: write 0 for all, or how many", o.questions)
	}
	out := evaluated{Folder: dir}
	functions, err := a.functionsBelow(ctx, dir, &out)
	if err != nil {
		return err
	}
	asked := eval.Asked(functions, o.questions)
	if len(asked) == 0 {
		return fmt.Errorf("no exported function below %s has a doc comment to ask for; name a folder of Go code", dir)
	}
	out.Functions, out.Questions = len(functions), len(asked)
	words, err := eval.Lexical(functions)
	if err != nil {
		return err
	}
	vector, err := eval.Vector(ctx, functions, embed.Train(textsOf(functions), embedDims))
	if err != nil {
		return err
	}
	for _, by := range []struct {
		name string
		rank eval.Ranker
	}{{"lexical", words}, {"vector", vector}, {"hybrid", eval.Fuse(words, vector)}} {
		f, err := eval.Measure(functions, asked, false, by.rank)
		if err != nil {
			return err
		}
		out.Rankings = append(out.Rankings, evalEntry{by.name, f.MRR, f.Recall})
	}
	return a.printSearchEval(&out)
}

func textsOf(functions []eval.Function) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range functions {
			if !yield(embed.Text(functions[i].Title, functions[i].Body)) {
				return
			}
		}
	}
}

// embedDims is how many numbers the vectors of an evaluation have.
const embedDims = 768

// functionsBelow parses the Go files below a folder.
func (a *app) functionsBelow(ctx context.Context, dir string, out *evaluated) ([]eval.Function, error) {
	var functions []eval.Function
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		name := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != dir && (name == "testdata" || name == "vendor" || strings.HasPrefix(name, ".")):
			return filepath.SkipDir
		case !d.Type().IsRegular() || filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		src, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		out.Files++
		functions = append(functions, eval.Functions(filepath.ToSlash(rel), src)...)
		return nil
	})
	return functions, err
}

func (a *app) printSearchEval(out *evaluated) error {
	if a.global.output != formatTable {
		return a.print(out)
	}
	t := render.NewTable(a.palette(), "BY", "MRR@10", "RECALL@10")
	for _, r := range out.Rankings {
		t.Row(r.By, fmt.Sprintf("%.4f", r.MRR10), fmt.Sprintf("%.4f", r.Recall10))
	}
	if err := t.Write(a.stdout); err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "\n%s questions, %s functions of %s files below %s\n", render.Grouped(out.Questions),
		render.Grouped(out.Functions), render.Grouped(out.Files), clean(out.Folder))
	return nil
}
