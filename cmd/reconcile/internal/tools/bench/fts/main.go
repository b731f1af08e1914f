// Command fts compares search with SQLite's FTS5 on the same texts, with the same queries, in one run: the time of each
// query, and the quality of the results for the questions of the gold set.
//
//	go run -C cmd/reconcile/internal/tools/bench/fts . -n 50000
//
// It is a separate module, so that SQLite is not a dependency of reconcile. FTS5 runs at its best: its database is in
// memory, statements are prepared, stop words are removed from the queries (they would be its most frequent terms), and
// it stems words (porter) or not, whichever answers more questions.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/vectors/lexical"
	"reconcile.dev/reconcile/vectors/lexical/lexicaltest"
)

func main() {
	n := flag.Int("n", 50_000, "number of texts")
	queries := flag.Int("queries", 1000, "number of queries")
	gold := flag.String("gold", "../../../../../../docs/memory-gold", "folder of the gold set")
	flag.Parse()
	if err := run(context.Background(), *n, *queries, *gold); err != nil {
		fmt.Fprintln(os.Stderr, "fts:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, n, queries int, gold string) error {
	fmt.Printf("%d processors, %s/%s, %d texts, %d queries of 1 to 5 words, the best %d\n\n",
		runtime.NumCPU(), runtime.GOOS, runtime.GOARCH, n, queries, best)
	fmt.Printf(rowForm, "WHAT", "RECONCILE", "FTS5", "FIGURE", "BOUND", "")
	corpus := lexicaltest.New(1)
	if err := measureSpeed(ctx, corpus.Documents(n), corpus.Queries(queries)); err != nil {
		return err
	}
	return measureQuality(ctx, gold)
}

const (
	rowForm = "%-46s %14s %14s %9s  %-8s %s\n"
	best    = 20
)

// row prints a figure; at least least is wanted.
func row(what, ours, theirs string, value, least float64) {
	verdict := "ok"
	if value < least {
		verdict = "UNDER"
	}
	fmt.Printf(rowForm, what, ours, theirs, fmt.Sprintf("%.2f", value), fmt.Sprintf("≥ %.4g", least), verdict)
}

// measureSpeed asks both in turn, so that a machine that is busy for a while slows both.
func measureSpeed(ctx context.Context, docs []lexical.Document, queries []string) error {
	ours, err := newLexical(docs)
	if err != nil {
		return err
	}
	theirs, err := newFTS(ctx, docs, "unicode61")
	if err != nil {
		return err
	}
	defer theirs.close()
	var a, b []time.Duration
	for round := range 2 { // the first warms both up
		a, b = nil, nil
		for _, q := range queries[:len(queries)/(2-round)] {
			t, err := timed(ctx, ours, q)
			if err != nil {
				return err
			}
			u, err := timed(ctx, theirs, q)
			if err != nil {
				return err
			}
			a, b = append(a, t), append(b, u)
		}
	}
	compare := func(what string, ours, theirs time.Duration) {
		row(what, ours.Round(100*time.Nanosecond).String(), theirs.Round(time.Microsecond).String(),
			float64(theirs)/float64(ours), 20)
	}
	compare("search, p50", quantile(a, 0.5), quantile(b, 0.5))
	compare("search, p99", quantile(a, 0.99), quantile(b, 0.99))
	compare("search, mean", mean(a), mean(b))
	return nil
}

func timed(ctx context.Context, s searcher, query string) (time.Duration, error) {
	start := time.Now()
	_, err := s.search(ctx, query, best)
	return time.Since(start), err
}

func quantile(samples []time.Duration, share float64) time.Duration {
	slices.Sort(samples)
	return samples[min(len(samples)-1, int(share*float64(len(samples))))]
}

func mean(samples []time.Duration) (sum time.Duration) {
	for _, s := range samples {
		sum += s
	}
	return sum / time.Duration(len(samples))
}

// measureQuality asks all the questions of the gold set.
func measureQuality(ctx context.Context, dir string) error {
	docs, ids, questions, err := readGold(dir)
	if err != nil {
		return err
	}
	ours, err := newLexical(docs)
	if err != nil {
		return err
	}
	got, err := evaluate(ctx, ours, ids, questions)
	if err != nil {
		return err
	}
	for _, tokenizer := range []string{"unicode61", "porter unicode61"} {
		theirs, err := newFTS(ctx, docs, tokenizer)
		if err != nil {
			return err
		}
		their, err := evaluate(ctx, theirs, ids, questions)
		theirs.close()
		if err != nil {
			return err
		}
		row("nDCG@10, "+tokenizer, fmt.Sprintf("%.3f", got.NDCG), fmt.Sprintf("%.3f", their.NDCG),
			got.NDCG/their.NDCG, 1)
		row("recall@5, "+tokenizer, fmt.Sprintf("%.3f", got.RecallAt5), fmt.Sprintf("%.3f", their.RecallAt5),
			got.RecallAt5/their.RecallAt5, 1)
	}
	return nil
}

func evaluate(ctx context.Context, s searcher, ids []string, questions []memory.Question) (memory.Evaluation, error) {
	var answers []memory.Answer
	for _, q := range questions {
		found, err := s.search(ctx, q.Question, 10)
		if err != nil {
			return memory.Evaluation{}, fmt.Errorf("%q: %w", q.Question, err)
		}
		var results []memory.Result
		for _, doc := range found {
			results = append(results, memory.Result{ID: ids[doc]})
		}
		answers = append(answers, memory.Judge(q, results))
	}
	return memory.Evaluate(answers), nil
}
