package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
)

const searchEvalLong = `Measure how well functions are found by their doc comments, in the Go code below a folder: the first sentence of an
exported function's doc comment, without the function's name, is the question, and is removed from the indexed text; the
function is the answer.

The results are MRR@10 (the mean of 1/rank of the answer) and recall@10 (how often it is among the first ten), for the
search modes words, vectors, and both with relations. The questions are run by the search itself, on an index of the code
without tests and testdata, limited to functions and methods.`

func newSearchEvalCmd(a *app) *cobra.Command {
	q := ops.SearchEvalRequest{}
	cmd := &cobra.Command{
		Use:     "eval [DIR]",
		Short:   "Measure how well functions are found by their doc comments",
		Long:    searchEvalLong,
		Example: "  reconcile search eval\n  reconcile search eval $(go env GOROOT)/src --questions 2000",
		Args:    arguments(0, 1, "a folder"),
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Dir = append(args, a.global.dir)[0]
			return a.searchEval(cmd.Context(), q)
		},
	}
	cmd.Flags().IntVar(&q.Questions, "questions", 0, "ask `N` questions, chosen by the names of the functions; 0 asks all")
	return cmd
}

func (a *app) searchEval(ctx context.Context, q ops.SearchEvalRequest) error {
	r, err := ops.SearchEval(ctx, a.env(), q)
	if err != nil {
		return err
	}
	if a.global.output != formatTable {
		return a.print(r)
	}
	t := render.NewTable(a.palette(), "BY", "MRR@10", "RECALL@10")
	for _, by := range r.Rankings {
		t.Row(by.By, fmt.Sprintf("%.4f", by.MRR10), fmt.Sprintf("%.4f", by.Recall10))
	}
	if err := t.Write(a.stdout); err != nil {
		return err
	}
	fmt.Fprintf(a.stdout, "\n%s, %s of %s below %s\n", render.GroupedPlural(r.Questions, "question"),
		render.GroupedPlural(r.Functions, "function"), render.GroupedPlural(r.Files, "file"), clean(r.Folder))
	return nil
}
