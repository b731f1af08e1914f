package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
)

func newMemoryGetCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "get ID…",
		Short: "Print full observations",
		Long: `Print full observations: the text, the agent, the time, the files, and the state. For one ID -o json prints an object, for
several a list.`,
		Example:           "  reconcile memory get obs-engineer-29-1709035200000-a1b2c3",
		Args:              arguments(1, -1, "the id of an observation"),
		RunE:              func(cmd *cobra.Command, args []string) error { return a.memoryGet(cmd.Context(), args) },
		ValidArgsFunction: a.completeMemory,
	}
}

func (a *app) memoryGet(ctx context.Context, ids []string) error {
	found, err := ops.GetMemory(ctx, a.env(), ids)
	switch {
	case err != nil:
		return err
	case a.global.output != formatTable && len(found) == 1:
		return a.print(found[0])
	case a.global.output != formatTable:
		return a.print(found)
	}
	for i := range found {
		if i > 0 {
			a.printf("\n")
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
		Long: `List observations, by issue and time: one line for each, with the tokens of its full text. Superseded and archived ones
are omitted, unless a flag selects them.`,
		Example: "  reconcile memory list --issue 29\n  reconcile memory list --category decision --since 30d -o json",
		Args:    arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			filter, err := o.read(a.now())
			if err != nil {
				return err
			}
			rows, err := ops.ListMemory(cmd.Context(), a.env(), filter)
			return a.printRows(rows, err)
		},
	}
	bindMemoryFilter(a, cmd, o)
	return cmd
}

// printRows prints observations, one per line.
func (a *app) printRows(rows []memory.Row, err error) error {
	return a.result(append([]memory.Row{}, rows...), err, func() error {
		if len(rows) == 0 {
			a.note("no observations")
		}
		return render.MemoryTable(a.stdout, a.palette(), rows, a.now())
	})
}

func newMemorySearchCmd(a *app) *cobra.Command {
	o, q := &memoryFilter{}, ops.SearchMemoryRequest{}
	cmd := &cobra.Command{
		Use:   "search QUERY…",
		Short: "Find observations by words, the best first",
		Long: `Find observations that have any of the words, the best first (BM25 over texts and summaries). Names in camelCase or
snake_case and paths also match by their parts: adapter finds DbAdapter and src/db/adapter.go. One line is printed for
each, with the tokens of its full text; "reconcile memory get ID" prints the full text.`,
		Example: "  reconcile memory search database adapter\n" +
			"  reconcile memory search \"connection pool\" --agent architect --limit 5 -o json",
		Args: arguments(1, -1, "words to look for"),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			q.Text = strings.Join(args, " ")
			if q.MemoryFilter, err = o.read(a.now()); err != nil {
				return err
			}
			r, err := ops.SearchMemory(cmd.Context(), a.env(), q)
			if err == nil && r.Hint != "" && a.global.output == formatTable {
				a.note("no observations: %s", r.Hint)
				return nil
			}
			return a.printRows(r.Rows, err)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	bindMemoryFilter(a, cmd, o)
	cmd.Flags().IntVar(&q.Limit, "limit", ops.MemorySearchLimit, "print at most `N` observations")
	return cmd
}

func newMemoryStatsCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:     "stats",
		Short:   "Show statistics of the memory, by category and agent",
		Example: "  reconcile memory stats\n  reconcile memory stats -o json",
		Args:    arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			stats, err := ops.MemoryStats(cmd.Context(), a.env())
			return a.result(stats, err, func() error { return render.MemoryStatsText(a.stdout, a.palette(), stats, a.now()) })
		},
	}
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
		Short: "Print the recall of earlier work for an agent that starts",
		Long: `Print the section "## Memory Recall" as an agent gets it when it starts: observations about its issue, about files that
the context names, and those with an uncommon word of the context; best first, at most 50, within a budget of tokens. If
there are none, nothing is printed. The printed observations are recorded as recalled.

Agents that reconcile runs have the section in their prompt already.`,
		Example: "  reconcile memory recall --agent reviewer --issue 30 --context \"review the export of observations\"\n" +
			"  git diff --name-only | reconcile memory recall --agent reviewer --issue 30 --context - --budget 2000",
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.recall(cmd.Context(), *o, cmd.Flags().Changed("budget"))
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.agent, "agent", "", "the `AGENT` that starts (default: RECONCILE_AGENT)")
	f.Var(&o.issue, "issue", "the issue of its work; 0 for none (default: RECONCILE_ISSUE)")
	f.StringVar(&o.context, "context", "", "the agent's next task, as `TEXT`; - reads standard input")
	f.IntVar(&o.budget, "budget", 0,
		"at most this many `TOKENS`; 0 means none (default: memory.maxTokens of reconcile.yaml)")
	_ = cmd.RegisterFlagCompletionFunc("agent", a.completeNamesOf(schemas.AgentKind))
	return cmd
}

func (a *app) recall(ctx context.Context, o recallOptions, budgeted bool) error {
	q := ops.RecallRequest{Agent: o.agent, Issue: o.issue.pointer(), Context: a.contextText(ctx, o.context)}
	if budgeted {
		q.Budget = &o.budget
	}
	found, err := ops.Recall(ctx, a.env(), q)
	found.IDs = append([]string{}, found.IDs...) // an empty list, not null
	return a.result(found, err, func() error {
		a.printf("%s", render.EndLine(a.harmless(found.Text)))
		return nil
	})
}

// harmless escapes the text of a memory or a summary for a terminal, and leaves it unchanged for files and pipes.
func (a *app) harmless(text string) string {
	if isTerminal(a.stdout) {
		return render.Text(text)
	}
	return text
}

// memoryFilter are the flags that select observations.
type memoryFilter struct {
	ops.MemoryFilter
	since, until string
	issue        issueFlag
}

// read returns the filter with the parsed flags.
func (m *memoryFilter) read(now time.Time) (f ops.MemoryFilter, err error) {
	f = m.MemoryFilter
	f.Issue = m.issue.pointer()
	if f.Since, err = ops.ParseTime("since", m.since, now); err != nil {
		return f, err
	}
	if f.Until, err = ops.ParseTime("until", m.until, now); err != nil {
		return f, err
	}
	if !f.Until.IsZero() && !f.Since.Before(f.Until) {
		return f, badUsage("--since %s is not before --until %s: no time is left between them", m.since, m.until)
	}
	return f, nil
}

// bindMemoryFilter binds the flags that select observations.
func bindMemoryFilter(a *app, cmd *cobra.Command, m *memoryFilter) {
	f := cmd.Flags()
	f.StringVar(&m.Agent, "agent", "", "only observations of this `AGENT`")
	f.Var(&m.issue, "issue", "only observations about this issue; 0 for those about none")
	f.StringVar(&m.Category, "category", "", "only this `CATEGORY`: "+strings.Join(schemas.Categories(), ", "))
	f.StringVar(&m.since, "since", "", "only observations since this `TIME`: 30d, 2026-02-27 or an RFC 3339 time")
	f.StringVar(&m.until, "until", "", "only observations before this `TIME`")
	f.BoolVar(&m.Stale, "stale", false, "only observations that may be stale: one of their files has changed since")
	f.BoolVar(&m.Superseded, "superseded", false, "only observations that a newer one replaces")
	f.BoolVar(&m.Archived, "archived", false, "only observations that compaction archived")
	f.BoolVar(&m.All, "all", false, "also superseded and archived observations")
	_ = cmd.RegisterFlagCompletionFunc("agent", a.completeNamesOf(schemas.AgentKind))
	_ = cmd.RegisterFlagCompletionFunc("category",
		cobra.FixedCompletions(schemas.Categories(), cobra.ShellCompDirectiveNoFileComp))
}

const memoryLong = `Capture what agents learn, search it, and show what the next agent recalls.

What an agent learned is captured when its work ends, as an Observation in specs/, and stored in state/memory/. Ids begin
with obs-, and the shell completes them. list and search print one line for each observation, with the tokens of its full
text; get prints the full text.`

func newMemoryCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "memory",
		Short: "Capture what agents learn; search, recall, verify and compact it",
		Long:  memoryLong,
		Example: "  reconcile memory capture --agent engineer --issue 29 session.jsonl\n" +
			"  reconcile memory search database adapter\n" +
			"  reconcile memory recall --agent reviewer --issue 30",
		RunE: noSubcommand,
	}
	cmd.AddCommand(
		newCaptureCmd(a), newMemoryGetCmd(a), newMemoryListCmd(a), newMemorySearchCmd(a), newRecallCmd(a),
		newMemoryVerifyCmd(a), newMemoryRemoveCmd(a), newMemoryStatsCmd(a), newMemoryRebuildCmd(a), newCompactCmd(a),
		newMemoryScanCmd(a), newMemoryEvalCmd(a), newMemoryAuditCmd(a),
	)
	return cmd
}

func newCaptureCmd(a *app) *cobra.Command {
	q := ops.CaptureRequest{}
	issue, summary := issueFlag{}, false
	cmd := &cobra.Command{
		Use:   "capture --agent AGENT --issue N [FILE|-]",
		Short: "Capture what an agent learned, from a conversation or a summary",
		Long: `Capture what an agent learned. FILE, or standard input, is a conversation (JSON lines with role and content, or a
transcript of Claude Code, Codex, Copilot or Gemini) or a summary, in which each bullet under Decisions, Code Changes,
Errors Encountered and Key Facts becomes an observation. The format is detected, unless --format gives it. Secrets and
everything between <private> and </private> are removed before anything is written. At most the 50 best observations are
kept; a known one only increases the count of the existing observation. With --supersedes, the best matching observation
replaces the older one. The capture is an Observation in specs/observations/; while another process holds the memory's
locks it stays there (exit code 75), and the next run adds it to the memory.`,
		Example: "  reconcile memory capture --agent engineer --issue 29 session.jsonl\n" +
			"  reconcile memory capture --agent engineer --issue 29 --summary - < summary.md\n" +
			"  echo 'SQLite it is: one file, no server.' | reconcile memory capture --agent architect --issue 29 \\\n" +
			"    --category decision --anchor src/db/adapter.go --supersedes obs-architect-29-1709035200000-a1b2c3",
		Args: arguments(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			if summary {
				if q.Form == memory.FormConversation {
					return badUsage("--summary and --format conversation exclude each other")
				}
				q.Form = memory.FormSummary
			}
			q.Issue, q.Text = issue.pointer(), a.textFrom(cmd.Context(), append(args, "-")[0])
			return a.capture(cmd.Context(), q)
		},
	}
	f := cmd.Flags()
	f.StringVar(&q.Agent, "agent", "", "the `AGENT` that learned it (default: RECONCILE_AGENT)")
	f.Var(&issue, "issue", "the issue that it is about; 0 for none (default: RECONCILE_ISSUE)")
	f.StringVar(&q.Session, "session", "", "the `SESSION` of the work (default: RECONCILE_SESSION)")
	f.Var(&choice{value: &q.Form, allowed: []string{memory.FormAuto, memory.FormConversation, memory.FormSummary}}, "format",
		"the `FORMAT` of the text: auto, conversation or summary (default auto)")
	f.BoolVar(&summary, "summary", false, "the same as --format summary")
	f.StringVar(&q.Category, "category", "",
		"the `CATEGORY` of what is in no section and has no label: "+strings.Join(schemas.Categories(), ", "))
	f.StringArrayVar(&q.Supersedes, "supersedes", nil,
		"the `ID` of an older observation that this replaces; may be repeated")
	f.StringArrayVar(&q.Anchors, "anchor", nil, "a `PATH` of the tree that it is about; may be repeated")
	_ = cmd.RegisterFlagCompletionFunc("agent", a.completeNamesOf(schemas.AgentKind))
	_ = cmd.RegisterFlagCompletionFunc("session", a.completeNamesOf(schemas.SessionKind))
	_ = cmd.RegisterFlagCompletionFunc("supersedes", a.completeMemory)
	_ = cmd.RegisterFlagCompletionFunc("category",
		cobra.FixedCompletions(schemas.Categories(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) capture(ctx context.Context, q ops.CaptureRequest) error {
	r, err := ops.Capture(ctx, a.env(), q)
	if err != nil {
		return err
	}
	if err := a.printCaptured(r); err != nil || !r.Held {
		return err
	}
	return exitWith(exitBusy) // it is captured, and not yet in the memory
}

func (a *app) printCaptured(r ops.CaptureResult) error {
	if a.global.output != formatTable {
		if r.Observations == nil {
			r.Observations = []schemas.Observation{}
		}
		return a.print(r)
	}
	switch {
	case r.Known:
		a.note("captured before: %s", r.Path)
	case r.Held:
		fmt.Fprintf(a.stderr, "warning: the capture is kept in %s; the next run adds it to the memory\n", clean(r.Path))
	case r.Path != "":
		a.note("wrote %s", r.Path)
	}
	if n := len(r.Repeats); n > 0 {
		a.note("%s known already", schemas.Count(n, "observation"))
	}
	if r.Dropped > 0 {
		a.note("%d of %d found were left out", r.Dropped, r.Found)
	}
	rows := make([]memory.Row, len(r.Observations))
	for i := range r.Observations {
		rows[i].ObservationIndex = r.Observations[i].Index()
	}
	return render.MemoryTable(a.stdout, a.palette(), rows, a.now())
}
