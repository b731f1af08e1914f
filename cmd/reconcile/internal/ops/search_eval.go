package ops

import (
	"context"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/state/regular"
	"reconcile.dev/reconcile/vectors"
	"reconcile.dev/reconcile/vectors/eval"
	"reconcile.dev/reconcile/vectors/source"
)

// SearchEvalRequest requests how well the functions of a folder of Go code are found by their doc comments.
type SearchEvalRequest struct {
	Dir       string
	Questions int // 0: all
}

// SearchEvalResult has the metrics of an evaluation.
type SearchEvalResult struct {
	Folder    string    `json:"folder"`
	Files     int       `json:"files"`
	Functions int       `json:"functions"`
	Questions int       `json:"questions"`
	Rankings  []Ranking `json:"rankings"`
}

// Ranking has the metrics of one search mode.
type Ranking struct {
	By       string  `json:"by"`
	MRR10    float64 `json:"mrr10"`
	Recall10 float64 `json:"recall10"`
}

// SearchEval evaluates search on a folder of Go code: how well functions are found by the first sentences of their doc
// comments as questions.
func SearchEval(ctx context.Context, env Env, q SearchEvalRequest) (r SearchEvalResult, err error) {
	defer func() { err = typed(err) }()
	if q.Questions < 0 {
		return r, badField("questions", " %d: write 0 for all, or how many", q.Questions)
	}
	var code goCode
	if err := code.read(ctx, q.Dir); err != nil {
		return r, err
	}
	asked := eval.Asked(code.functions, q.Questions)
	if len(asked) == 0 {
		return r, fmt.Errorf("no exported function below %s has a doc comment to ask for; name a folder of Go code", q.Dir)
	}
	const dims = 768
	x, err := eval.Index(ctx, code.files, code.modules, vectors.Options{Dims: dims, Progress: env.indexing().Progress})
	if err != nil {
		return r, err
	}
	r = SearchEvalResult{Folder: q.Dir, Files: len(code.files), Functions: len(code.functions), Questions: len(asked)}
	for _, mode := range []vectors.Mode{vectors.Lexical, vectors.Vector, vectors.Hybrid} {
		f, err := eval.Measure(code.functions, asked, false, eval.By(ctx, x, mode))
		if err != nil {
			return r, err
		}
		r.Rankings = append(r.Rankings, Ranking{string(mode), f.MRR, f.Recall})
	}
	return r, nil
}

// goCode is the Go code below a folder.
type goCode struct {
	files     []source.File // without the questions
	functions []eval.Function
	modules   source.Modules
}

// read reads the files, without tests and third-party code.
func (c *goCode) read(ctx context.Context, dir string) error {
	return filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil && p == dir {
			return badRequest("%s: %w; name a folder of Go code", dir, regular.Cause(err))
		}
		if err == nil {
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		name := d.Name()
		switch {
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
		c.add(source.File{Path: filepath.ToSlash(rel), Text: text})
		return nil
	})
}

func (c *goCode) add(f source.File) {
	if filepath.Ext(f.Path) != ".go" {
		if m, ok := source.ParseModule(f); ok {
			c.modules = append(c.modules, m)
		}
		return
	}
	cut, functions := eval.Cut(f)
	c.files, c.functions = append(c.files, cut), append(c.functions, functions...)
}

// evaluate runs all questions.
func evaluate(ctx context.Context, m *memstore.Files, by string, questions []memory.Question) (EvalMemoryResult, error) {
	r := EvalMemoryResult{By: by, Unknown: []string{}, Answers: []memory.Answer{}}
	known, err := knownOf(ctx, m)
	if err != nil {
		return r, err
	}
	for _, q := range questions {
		ids, err := ask(ctx, m, by, q.Question)
		if err != nil {
			return r, fmt.Errorf("ask %q: %w", q.Question, err)
		}
		var results []memory.Result
		for _, id := range known.merge(ids) { // archived originals are found, too
			results = append(results, memory.Result{ID: id, Tokens: known.tokens[id]})
		}
		for _, id := range q.Expect {
			if _, ok := known.tokens[id]; !ok && !slices.Contains(r.Unknown, id) {
				r.Unknown = append(r.Unknown, id)
			}
		}
		q.Expect = known.merge(q.Expect)
		r.Answers = append(r.Answers, memory.Judge(q, results))
	}
	r.Evaluation = memory.Evaluate(r.Answers)
	return r, nil
}

// ask returns the ids that answer a question, best first.
func ask(ctx context.Context, m *memstore.Files, by, question string) ([]string, error) {
	if by == ByRecall {
		found, err := m.Recall(ctx, memstore.Request{Agent: "eval", Context: question, Dry: true})
		return found.IDs, err
	}
	rows, err := m.Search(ctx, memstore.Query{Text: question, Limit: 10})
	ids := make([]string, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
	}
	return ids, err
}
