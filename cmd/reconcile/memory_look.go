package main

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/secrets"
	"reconcile.dev/reconcile/state"
	"reconcile.dev/reconcile/vectors/lexical"
)

func newMemoryGetCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "get ID…",
		Short: "Print observations in full",
		Long: `Print observations in full: what was learned, by whom and when, what it is about, and how it stands. Of one ID
-o json prints an object, of several a list.`,
		Example:           "  reconcile memory get obs-engineer-29-1709035200000-a1b2c3",
		Args:              memoryIDs,
		RunE:              func(cmd *cobra.Command, args []string) error { return a.memoryGet(cmd.Context(), args) },
		ValidArgsFunction: a.completeMemory,
	}
}

func (a *app) memoryGet(ctx context.Context, ids []string) error {
	return a.withMemory(func(_ *state.Store, m *memstore.Files) error {
		found := make([]render.Memory, len(ids))
		for i, id := range ids {
			o, err := m.ByID(ctx, id)
			if err != nil {
				return a.named(ctx, m, ids[i:i+1], err)
			}
			found[i] = render.Memory{Observation: o, Stale: m.Stale(&o)}
		}
		return a.printMemories(found)
	})
}

func (a *app) printMemories(found []render.Memory) error {
	switch {
	case a.global.output != formatTable && len(found) == 1:
		return a.print(found[0])
	case a.global.output != formatTable:
		return a.print(found)
	}
	for i := range found {
		if i > 0 {
			fmt.Fprintln(a.stdout)
		}
		if err := render.MemoryText(a.stdout, a.palette(), found[i], a.now()); err != nil {
			return err
		}
	}
	return nil
}

func newMemoryListCmd(a *app) *cobra.Command {
	o := &memoryFilter{}
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List observations, by issue and time",
		Long: `List observations, by issue and time: a line of each, with the tokens that reading all of it costs. What is
superseded or archived is left out, unless a flag asks for it.`,
		Example: "  reconcile memory list --issue 29\n  reconcile memory list --category decision --since 30d -o json",
		Args:    arguments(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.memoryList(cmd.Context(), *o) },
	}
	o.bind(a, cmd, cmd.Flags())
	return cmd
}

func (a *app) memoryList(ctx context.Context, o memoryFilter) error {
	filter, err := o.filter(a.now())
	if err != nil {
		return err
	}
	return a.withMemory(func(_ *state.Store, m *memstore.Files) error {
		rows, err := m.List(ctx, filter)
		if err != nil {
			return err
		}
		return a.printRows(rows)
	})
}

// printRows prints lines of observations.
func (a *app) printRows(rows []memstore.Row) error {
	if a.global.output != formatTable {
		if rows == nil {
			rows = []memstore.Row{}
		}
		return a.print(rows)
	}
	if len(rows) == 0 {
		a.note("no observations")
	}
	return render.MemoryTable(a.stdout, a.palette(), shownRows(rows), a.now())
}

func shownRows(rows []memstore.Row) []render.MemoryRow {
	out := make([]render.MemoryRow, len(rows))
	for i, r := range rows {
		out[i] = render.MemoryRow(r)
	}
	return out
}

// searchOptions are the flags of search.
type searchOptions struct {
	memoryFilter
	limit int
}

func newMemorySearchCmd(a *app) *cobra.Command {
	o := &searchOptions{}
	cmd := &cobra.Command{
		Use:   "search QUERY…",
		Short: "Find observations by words, the best first",
		Long: `Find observations that have any of the words, the best first (BM25 over what they say and their summaries).
Names in camelCase or snake_case and paths are found by their parts, too: adapter finds DbAdapter and src/db/adapter.go.

A line of each is printed, with the tokens that reading all of it costs; "reconcile memory get ID" prints the whole.`,
		Example: "  reconcile memory search database adapter\n" +
			"  reconcile memory search \"connection pool\" --agent architect --limit 5 -o json",
		Args: arguments(1, -1, "words to look for"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.memorySearch(cmd.Context(), strings.Join(args, " "), *o)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	o.bind(a, cmd, cmd.Flags())
	cmd.Flags().IntVar(&o.limit, "limit", memstore.DefaultLimit, "print at most `N` observations")
	return cmd
}

func (a *app) memorySearch(ctx context.Context, query string, o searchOptions) error {
	const longest = 10_000
	switch {
	case o.limit < 1:
		return badUsage("--limit %d: at least one observation must be wanted", o.limit)
	case len(query) > longest:
		return badUsage("the query has %d bytes, at most %d are allowed: search for the words that matter", len(query), longest)
	case strings.TrimSpace(query) == "":
		return badUsage("the query is empty: name words to look for")
	}
	filter, err := o.filter(a.now())
	if err != nil {
		return err
	}
	return a.withMemory(func(_ *state.Store, m *memstore.Files) error {
		began := time.Now() // of the log, not of a record
		rows, err := m.Search(ctx, memstore.Query{Text: query, Filter: filter, Limit: o.limit})
		if err != nil {
			return err
		}
		a.logMemory("memory-search", slog.String("query", secrets.Redact(query)), slog.Int("results", len(rows)),
			slog.Duration("latency", time.Since(began)))
		if len(rows) == 0 && len(lexical.Terms(query)) == 0 && a.global.output == formatTable {
			a.note("no observations: %s", ops.WithoutTerms(query))
			return nil
		}
		return a.printRows(rows)
	})
}

// logMemory logs what was done with the memory (agentx-spec, memory pipeline 12.2).
func (a *app) logMemory(what string, attrs ...slog.Attr) {
	if a.log != nil {
		a.log.LogAttrs(context.Background(), slog.LevelInfo, what, attrs...)
	}
}

func newMemoryStatsCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "stats",
		Short:   "Show how much there is in the memory, of what sort and of whom",
		Example: "  reconcile memory stats\n  reconcile memory stats -o json",
		Args:    arguments(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.memoryStats(cmd.Context()) },
	}
}

func (a *app) memoryStats(ctx context.Context) error {
	return a.withMemory(func(_ *state.Store, m *memstore.Files) error {
		stats, err := m.Stats(ctx)
		if err != nil {
			return err
		}
		if a.global.output != formatTable {
			return a.print(stats)
		}
		return render.MemoryStatsText(a.stdout, a.palette(), stats, a.now())
	})
}

// recallOptions are the flags of recall.
type recallOptions struct {
	agent   string
	issue   issueFlag
	context string
	budget  int
}

func newRecallCmd(a *app) *cobra.Command {
	o := &recallOptions{}
	cmd := &cobra.Command{
		Use:   "recall --agent AGENT --issue N",
		Short: "Print what an agent is told of earlier work when it begins",
		Long: `Print the section "## Memory Recall" as an agent gets it when it begins: what was learned about its issue, about files
that the context names, and what has a word of the context that is no common one; best first, 50 notes at most, within
a budget of tokens. Nothing is printed where there is nothing of the sort. What is printed counts as recalled.

An agent that reconcile runs has the section in its prompt already.`,
		Example: "  reconcile memory recall --agent reviewer --issue 30 --context \"review the export of observations\"\n" +
			"  git diff --name-only | reconcile memory recall --agent reviewer --issue 30 --context - --budget 2000",
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.recall(cmd.Context(), *o, cmd.Flags().Changed("budget"))
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.agent, "agent", "", "the `AGENT` that begins (default: RECONCILE_AGENT)")
	f.Var(&o.issue, "issue", "the issue of its work; 0 for none (default: RECONCILE_ISSUE)")
	f.StringVar(&o.context, "context", "", "`TEXT` that tells what the agent is about to do; - reads standard input")
	f.IntVar(&o.budget, "budget", 0,
		"at most so many `TOKENS`; 0 means nothing (default: memory.maxTokens of reconcile.yaml)")
	_ = cmd.RegisterFlagCompletionFunc("agent", a.completeNamesOf(schemas.AgentKind))
	return cmd
}

func (a *app) recall(ctx context.Context, o recallOptions, budgeted bool) error {
	a.fillWho(&o.agent, &o.issue)
	if err := checkWho("recall", o.agent, o.issue); err != nil {
		return err
	}
	request := memstore.Request{Agent: o.agent, Issue: o.issue.number, By: o.agent}
	if budgeted {
		if o.budget < 0 {
			return badUsage("--budget %d: a number of tokens is wanted, 0 for none", o.budget)
		}
		request.Budget = &o.budget
	}
	var err error
	if request.Context, err = a.textOf(o.context); err != nil {
		return err
	}
	return a.withMemory(func(s *state.Store, m *memstore.Files) error {
		if !*s.Settings().Memory.Enabled {
			a.note("%v", memstore.ErrDisabled)
			return a.printRecall(memstore.Recalled{})
		}
		found, err := m.Recall(ctx, request)
		if err != nil {
			return err
		}
		switch {
		case found.Least > 0:
			a.note("nothing fits into the budget: of %s, none takes less than a budget of %d tokens; write --budget %d, or more",
				render.Plural(found.Total, "note"), found.Least, found.Least)
		case found.Text == "":
			a.note("nothing to recall")
		}
		a.tellRecalled(ctx, s, o, found)
		return a.printRecall(found)
	})
}

// printRecall prints the section; for programs, with what it holds.
func (a *app) printRecall(found memstore.Recalled) error {
	if a.global.output != formatTable {
		if found.IDs == nil {
			found.IDs = []string{}
		}
		return a.print(found)
	}
	if found.Text == "" {
		return nil
	}
	_, err := fmt.Fprint(a.stdout, endLine(a.harmless(found.Text)))
	return err
}

// harmless is text as it is for files and pipes, and fit for a terminal on one.
func (a *app) harmless(text string) string {
	if isTerminal(a.stdout) {
		return render.Text(text)
	}
	return text
}
