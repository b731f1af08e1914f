package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
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

// Ways to ask.
const (
	bySearch = "search"
	byRecall = "recall"
)

// evalOptions are the flags of eval. Bounds of 0 bind nothing.
type evalOptions struct {
	gold, by                              string
	recall1, recall5, recall10, mrr, ndcg float64
	tokens                                int
}

func newMemoryEvalCmd(a *app) *cobra.Command {
	o := &evalOptions{}
	cmd := &cobra.Command{
		Use:   "eval --gold FILE",
		Short: "Measure how well the memory finds what is known to answer questions",
		Long:  memoryEvalLong,
		Example: "  reconcile memory eval --gold questions.jsonl\n" +
			"  reconcile memory eval --gold questions.jsonl --min-recall5 0.9 --min-ndcg 0.8 -o json",
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.memoryEval(cmd.Context(), *o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.gold, "gold", "", "the `FILE` with the gold set; - reads standard input")
	f.StringVar(&o.by, "by", bySearch, "the `WAY` to ask: "+bySearch+" or "+byRecall)
	f.Float64Var(&o.recall1, "min-recall1", 0, "fail when recall@1 is below this `SHARE`")
	f.Float64Var(&o.recall5, "min-recall5", 0, "fail when recall@5 is below this `SHARE`")
	f.Float64Var(&o.recall10, "min-recall10", 0, "fail when recall@10 is below this `SHARE`")
	f.Float64Var(&o.mrr, "min-mrr", 0, "fail when MRR is below this `SHARE`")
	f.Float64Var(&o.ndcg, "min-ndcg", 0, "fail when nDCG@10 is below this `SHARE`")
	f.IntVar(&o.tokens, "max-tokens", 0, "fail when an answer costs more than `N` tokens in the mean")
	_ = cmd.RegisterFlagCompletionFunc("by",
		cobra.FixedCompletions([]string{bySearch, byRecall}, cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

// evalReport is what eval prints for machines.
type evalReport struct {
	By string `json:"by"`
	memory.Evaluation
	// Unknown are the expected ids that the memory does not have.
	Unknown []string `json:"unknown"`
	// Past says which bounds are not kept.
	Past    []string        `json:"past"`
	Answers []memory.Answer `json:"answers"`
}

func (a *app) memoryEval(ctx context.Context, o evalOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	questions, err := a.readGold(o.gold)
	if err != nil {
		return err
	}
	return a.withMemory(func(_ *state.Store, m *memstore.Files) error {
		r, err := evaluate(ctx, m, o.by, questions)
		if err != nil {
			return err
		}
		r.Past = o.past(r.Evaluation)
		if n := len(r.Unknown); n > 0 {
			a.warnMemory(fmt.Sprintf("the memory does not have %d of the expected observations, %s first; "+
				"run reconcile if they are in specs, or correct %s", n, r.Unknown[0], o.gold))
		}
		return errors.Join(a.printEval(r), pastBounds(r.Past))
	})
}

// check refuses flags that cannot be meant.
func (o *evalOptions) check() error {
	if o.gold == "" {
		return badUsage("reconcile memory eval needs a gold set; for example: " +
			"reconcile memory eval --gold questions.jsonl")
	}
	if ways := []string{bySearch, byRecall}; !slices.Contains(ways, o.by) {
		return badUsage("--by %q%s: there are %s", o.by, didYouMean(o.by, ways), strings.Join(ways, " and "))
	}
	for _, least := range []float64{o.recall1, o.recall5, o.recall10, o.mrr, o.ndcg} {
		if math.IsNaN(least) || least < 0 || least > 1 {
			return badUsage("a bound of %v: shares are between 0 and 1", least)
		}
	}
	if o.tokens < 0 {
		return badUsage("--max-tokens %d: a number of tokens is wanted, 0 for no bound", o.tokens)
	}
	return nil
}

// readGold reads a gold set.
func (a *app) readGold(file string) ([]memory.Question, error) {
	data, err := a.readInput(file)
	if err != nil {
		return nil, err
	}
	questions, err := memory.ParseGold(data)
	if err != nil {
		return nil, badUsage("%s: %v", file, err)
	}
	return questions, nil
}

// evaluate asks all questions.
func evaluate(ctx context.Context, m *memstore.Files, by string, questions []memory.Question) (evalReport, error) {
	r := evalReport{By: by, Unknown: []string{}, Answers: []memory.Answer{}}
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
		for _, id := range known.standing(ids) { // originals are found, too
			results = append(results, memory.Result{ID: id, Tokens: known.tokens[id]})
		}
		for _, id := range q.Expect {
			if _, ok := known.tokens[id]; !ok && !slices.Contains(r.Unknown, id) {
				r.Unknown = append(r.Unknown, id)
			}
		}
		q.Expect = known.standing(q.Expect)
		r.Answers = append(r.Answers, memory.Judge(q, results))
	}
	r.Evaluation = memory.Evaluate(r.Answers)
	return r, nil
}

// knownIDs says of every observation what reading it costs, and which one stands for it since compaction put it away.
type knownIDs struct {
	tokens map[string]int
	merged map[string]string
}

func knownOf(ctx context.Context, m *memstore.Files) (knownIDs, error) {
	k := knownIDs{map[string]int{}, map[string]string{}}
	return k, m.Each(ctx, func(o *schemas.Observation) error {
		k.tokens[o.ID] = o.Tokens
		for _, id := range o.Compacts {
			k.merged[id] = o.ID
		}
		return nil
	})
}

// standing replaces ids by those that stand for them.
func (k *knownIDs) standing(ids []string) []string {
	var out []string
	for _, id := range ids {
		for range len(k.merged) { // of what was merged twice, too; a ring in damaged files ends
			next, ok := k.merged[id]
			if !ok {
				break
			}
			id = next
		}
		if !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

// ask returns the ids that answer a question, best first.
func ask(ctx context.Context, m *memstore.Files, by, question string) ([]string, error) {
	if by == byRecall {
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

// figure is one of an evaluation's, with the bound that it has to keep.
type figure struct {
	name         string
	value, bound float64
	most         bool // the bound is the highest allowed value, else the lowest
}

func (o *evalOptions) figures(e memory.Evaluation) []figure {
	return []figure{
		{name: "recall@1", value: e.RecallAt1, bound: o.recall1},
		{name: "recall@5", value: e.RecallAt5, bound: o.recall5},
		{name: "recall@10", value: e.RecallAt10, bound: o.recall10},
		{name: "MRR", value: e.MRR, bound: o.mrr},
		{name: "nDCG@10", value: e.NDCG, bound: o.ndcg},
		{name: "tokens", value: e.Tokens, bound: float64(o.tokens), most: true},
	}
}

// past reports whether the figure does not keep its bound. Rounding of a mean is forgiven.
func (f figure) past() bool {
	const rounding = 1e-9
	if f.most {
		return f.bound > 0 && f.value > f.bound+rounding
	}
	return f.value < f.bound-rounding
}

// past says of each bound that is not kept what is and what was wanted.
func (o *evalOptions) past(e memory.Evaluation) []string {
	out := []string{}
	for _, f := range o.figures(e) {
		word := "least"
		if f.most {
			word = "most"
		}
		if f.past() {
			out = append(out, fmt.Sprintf("%s is %.4g, at %s %.4g is wanted", f.name, f.value, word, f.bound))
		}
	}
	return out
}

// pastBounds is the error of a command whose result is past its bounds; nil if it is not.
func pastBounds(past []string) error {
	if len(past) == 0 {
		return nil
	}
	return errors.New(strings.Join(past, "; "))
}

func (a *app) printEval(r evalReport) error {
	if a.global.output != formatTable {
		return a.print(r)
	}
	t := render.NewTable(a.palette(), "FIGURE", "VALUE")
	t.Row("questions", strconv.Itoa(r.Questions))
	for _, f := range (&evalOptions{}).figures(r.Evaluation) {
		if f.most {
			t.Row(f.name, fmt.Sprintf("%.1f", f.value))
			continue
		}
		t.Row(f.name, fmt.Sprintf("%.3f", f.value))
	}
	if err := t.Write(a.stdout); err != nil {
		return err
	}
	return a.printMissed(r.Answers)
}

// printMissed lists the questions that were not answered; of many the first.
func (a *app) printMissed(answers []memory.Answer) error {
	const most = 20
	missed := slices.DeleteFunc(slices.Clone(answers), func(q memory.Answer) bool { return q.Rank > 0 })
	if len(missed) == 0 {
		return nil
	}
	t := render.NewTable(a.palette(), "NOT AMONG THE FIRST TEN", "EXPECTED")
	for _, q := range missed[:min(len(missed), most)] {
		t.Row(render.Cut(q.Question.Question, 80), strings.Join(q.Expect, " "))
	}
	if more := len(missed) - most; more > 0 {
		t.Row(fmt.Sprintf("and %d more; -o json has all", more))
	}
	fmt.Fprintln(a.stdout)
	return t.Write(a.stdout)
}
