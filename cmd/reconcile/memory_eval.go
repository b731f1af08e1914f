package main

import (
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
)

const memoryEvalLong = `Ask the memory the questions of a gold set, whose answers are known, and measure how well it finds
them.

The set has a JSON object on each line: {"question": "why no ORM", "expect": ["obs-engineer-18-1768226700000-a1b2c3"]}.
The figures are means over all questions:

  recall@K   the share of the expected observations that are among the first K results
  MRR        1 through the place of the first one, if it is among the first ten
  nDCG@10    the discounted cumulative gain of the first ten, through the highest possible one
  tokens     what it costs to read the results in full, up to the last expected one; all ten if one is missing

An observation that compaction merged with others is found where the merged one is.

A figure past the bound that a flag gives it ends the command with 1, so that CI can watch over the memory. --by recall
asks as an agent does that begins with the question; nothing counts as recalled.`

func newMemoryEvalCmd(a *app) *cobra.Command {
	q, gold := ops.EvalMemoryRequest{}, ""
	cmd := &cobra.Command{
		Use:   "eval --gold FILE",
		Short: "Measure how well the memory finds what is known to answer questions",
		Long:  memoryEvalLong,
		Example: "  reconcile memory eval --gold questions.jsonl\n" +
			"  reconcile memory eval --gold questions.jsonl --min-recall5 0.9 --min-ndcg 0.8 -o json",
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if gold == "" {
				return badUsage("reconcile memory eval needs a gold set; for example: reconcile memory eval --gold questions.jsonl")
			}
			q.Gold = a.textFrom(gold)
			q.Gold.Name = gold
			return a.memoryEval(cmd.Context(), q)
		},
	}
	f := cmd.Flags()
	f.StringVar(&gold, "gold", "", "the `FILE` with the gold set; - reads standard input")
	f.StringVar(&q.By, "by", ops.BySearch, "the `WAY` to ask: "+ops.BySearch+" or "+ops.ByRecall)
	f.Float64Var(&q.Least.Recall1, "min-recall1", 0, "fail when recall@1 is below this `SHARE`")
	f.Float64Var(&q.Least.Recall5, "min-recall5", 0, "fail when recall@5 is below this `SHARE`")
	f.Float64Var(&q.Least.Recall10, "min-recall10", 0, "fail when recall@10 is below this `SHARE`")
	f.Float64Var(&q.Least.MRR, "min-mrr", 0, "fail when MRR is below this `SHARE`")
	f.Float64Var(&q.Least.NDCG, "min-ndcg", 0, "fail when nDCG@10 is below this `SHARE`")
	f.IntVar(&q.Least.Tokens, "max-tokens", 0, "fail when an answer costs more than `N` tokens in the mean")
	_ = cmd.RegisterFlagCompletionFunc("by",
		cobra.FixedCompletions([]string{ops.BySearch, ops.ByRecall}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) memoryEval(ctx context.Context, q ops.EvalMemoryRequest) error {
	r, err := ops.EvalMemory(ctx, a.env(), q)
	if err != nil {
		return err
	}
	if a.global.output != formatTable {
		err = a.print(r)
	} else {
		err = render.MemoryEvaluation(a.stdout, a.palette(), r.Evaluation, r.Answers)
	}
	return errors.Join(err, pastBounds(r.Past))
}

// pastBounds is the error of a command whose result violates its bounds; nil if it does not.
func pastBounds(past []string) error {
	if len(past) == 0 {
		return nil
	}
	return errors.New(strings.Join(past, "; "))
}
