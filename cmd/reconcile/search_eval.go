package main

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/state/regular"
	"reconcile.dev/reconcile/vectors"
	"reconcile.dev/reconcile/vectors/eval"
	"reconcile.dev/reconcile/vectors/source"
)

// evalFlags are the flags of search eval.
type evalFlags struct{ questions int }

const searchEvalLong = `Measure how well functions are found by what they do, on the Go code below a folder: the first sentence of an exported
function's doc comment, without the function's name, is the question, and is taken out of what is indexed; the function
is the answer.

Printed are MRR@10 (the mean of 1/rank of the answer) and recall@10 (how often it is among the first ten), by the modes of
search: by words, by vectors, and by both with relations. The questions are put to the search itself, in an index of the
code without tests and testdata, and only functions and methods are wanted.`

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
	var code goCode
	if err := code.read(ctx, dir); err != nil {
		return err
	}
	asked := eval.Asked(code.functions, o.questions)
	if len(asked) == 0 {
		return fmt.Errorf("no exported function below %s has a doc comment to ask for; name a folder of Go code", dir)
	}
	out.Files, out.Functions, out.Questions = len(code.files), len(code.functions), len(asked)
	x, err := eval.Index(ctx, code.files, code.modules, vectors.Options{Dims: embedDims, Progress: a.indexProgress()})
	if err != nil {
		return err
	}
	for _, mode := range []vectors.Mode{vectors.Lexical, vectors.Vector, vectors.Hybrid} {
		f, err := eval.Measure(code.functions, asked, false, eval.By(ctx, x, mode))
		if err != nil {
			return err
		}
		out.Rankings = append(out.Rankings, evalEntry{string(mode), f.MRR, f.Recall})
	}
	return a.printSearchEval(&out)
}

// embedDims is how many numbers the vectors of an evaluation have.
const embedDims = 768

// goCode is the Go code below a folder.
type goCode struct {
	files     []source.File // without the questions
	functions []eval.Function
	modules   source.Modules
}

// read reads the files, but for tests and what others wrote.
func (c *goCode) read(ctx context.Context, dir string) error {
	return filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err == nil {
			err = ctx.Err()
		}
		name := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && p != dir && (name == "testdata" || name == "vendor" || strings.HasPrefix(name, ".")):
			return filepath.SkipDir
		case !d.Type().IsRegular() || name != "go.mod" && (filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go")):
			return nil
		}
		text, err := regular.ReadPath(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, p)
		if err != nil {
			return err
		}
		c.take(source.File{Path: filepath.ToSlash(rel), Text: text})
		return nil
	})
}

func (c *goCode) take(f source.File) {
	if filepath.Ext(f.Path) != ".go" {
		if m, ok := source.ParseModule(f); ok {
			c.modules = append(c.modules, m)
		}
		return
	}
	cut, functions := eval.Cut(f)
	c.files, c.functions = append(c.files, cut), append(c.functions, functions...)
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
	fmt.Fprintf(a.stdout, "\n%s, %s of %s below %s\n", render.GroupedPlural(out.Questions, "question"),
		render.GroupedPlural(out.Functions, "function"), render.GroupedPlural(out.Files, "file"), clean(out.Folder))
	return nil
}
