package main

import (
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/schemas"
)

const memoryLong = `Keep what agents learn, find it again, and see what a next agent is told of it.

What an agent learned is captured when its work ends, as an Observation in specs/, and kept in state/memory/. Ids begin
with obs- and are completed by the shell. list and search show a line of each observation, and what it costs to read all
of it; get prints the whole.`

func newMemoryCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "memory",
		Short: "Keep what agents learn: capture, search, recall, verify and compact it",
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

// bindMemoryFilter binds the flags that choose observations.
func bindMemoryFilter(a *app, cmd *cobra.Command, m *memoryFilter) {
	f := cmd.Flags()
	f.StringVar(&m.Agent, "agent", "", "only what this `AGENT` learned")
	f.Var(&m.issue, "issue", "only what was learned about this issue; 0 for what is about none")
	f.StringVar(&m.Category, "category", "", "only this `CATEGORY`: "+strings.Join(schemas.Categories(), ", "))
	f.StringVar(&m.since, "since", "", "only what was learned from this `TIME` on: 30d, 2026-02-27 or an RFC 3339 time")
	f.StringVar(&m.until, "until", "", "only what was learned before this `TIME`")
	f.BoolVar(&m.Stale, "stale", false, "only what may be stale: a file that it is about has changed since")
	f.BoolVar(&m.Superseded, "superseded", false, "only what a newer observation replaces")
	f.BoolVar(&m.Archived, "archived", false, "only what compaction has put away")
	f.BoolVar(&m.All, "all", false, "also what is superseded or archived")
	_ = cmd.RegisterFlagCompletionFunc("agent", a.completeNamesOf(schemas.AgentKind))
	_ = cmd.RegisterFlagCompletionFunc("category",
		cobra.FixedCompletions(schemas.Categories(), cobra.ShellCompDirectiveNoFileComp))
}

// memoryFilter are the flags that choose observations.
type memoryFilter struct {
	ops.MemoryFilter
	since, until string
	issue        issueFlag
}

// read reads the flags that are not read as they are.
func (m *memoryFilter) read(now time.Time) (f ops.MemoryFilter, err error) {
	f = m.MemoryFilter
	f.Issue = m.issue.pointer()
	if f.Since, err = parseTime("--since", m.since, now); err != nil {
		return f, err
	}
	if f.Until, err = parseTime("--until", m.until, now); err != nil {
		return f, err
	}
	if !f.Until.IsZero() && !f.Since.Before(f.Until) {
		return f, badUsage("--since %s is not before --until %s: no time is left between them", m.since, m.until)
	}
	return f, nil
}

// pointer is the number of the issue; nil if it is not given.
func (f *issueFlag) pointer() *int {
	if !f.given {
		return nil
	}
	return &f.number
}

// parseTime reads a time as digest does; "" is the zero time.
func parseTime(flag, word string, now time.Time) (time.Time, error) {
	if word == "" {
		return time.Time{}, nil
	}
	at, err := parseSince(word, now)
	if err != nil || word == "all" {
		return at, badUsage("%s %q: write how long ago, like 30d or 24h, a day like 2026-02-27, or an RFC 3339 time",
			flag, word)
	}
	return at, nil
}

// completeMemory offers the ids of observations that begin with what was typed.
func (a *app) completeMemory(
	cmd *cobra.Command, args []string, typed string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	const most = 200 // more than a shell shows
	var out []cobra.Completion
	rows, err := ops.ListMemory(cmd.Context(), a.env(), ops.MemoryFilter{All: true})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for i := 0; i < len(rows) && len(out) < most; i++ {
		if r := &rows[i]; !r.Archived && strings.HasPrefix(r.ID, typed) && !slices.Contains(args, r.ID) {
			out = append(out, cobra.CompletionWithDesc(r.ID, render.Cut(render.Line(r.Summary), 60)))
		}
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
