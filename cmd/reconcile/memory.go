package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/specs"
	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
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
		RunE: noMemoryCommand,
	}
	cmd.AddCommand(
		newCaptureCmd(a), newMemoryGetCmd(a), newMemoryListCmd(a), newMemorySearchCmd(a), newRecallCmd(a),
		newMemoryVerifyCmd(a), newMemoryRemoveCmd(a), newMemoryStatsCmd(a), newMemoryRebuildCmd(a), newCompactCmd(a),
		newMemoryScanCmd(a), newMemoryEvalCmd(a), newMemoryAuditCmd(a),
	)
	return cmd
}

// noMemoryCommand refuses the bare command, and words that are none.
func noMemoryCommand(cmd *cobra.Command, args []string) error {
	var names []string
	for _, c := range cmd.Commands() {
		names = append(names, c.Name())
	}
	if len(args) == 0 {
		return badUsage("reconcile memory needs one of %s; for example: %s", strings.Join(names, ", "), firstExample(cmd))
	}
	return badUsage("memory has no command %q%s; there are %s", args[0], didYouMean(args[0], names),
		strings.Join(names, ", "))
}

// withMemory opens the memory of the tree for do. The tree itself is not read.
func (a *app) withMemory(do func(*state.Store, *memstore.Files) error) error {
	s, err := a.openForMemory()
	if err != nil {
		return err
	}
	defer s.Close()
	m := a.memoryOf(s)
	return errors.Join(refused(do(s, m)), m.Close())
}

// openForMemory opens the tree. Settings that cannot be read at all may have turned the memory off: then nothing is done.
func (a *app) openForMemory() (*state.Store, error) {
	s, err := a.open()
	if err != nil {
		return nil, err
	}
	if err := s.CheckFolders(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	switch wrong, unusable := s.CheckSettings(); {
	case unusable:
		fmt.Fprintf(a.stderr, "reconcile: %s; nothing was done, since the memory may be turned off there\n", clean(wrong.Error()))
		return nil, errors.Join(exitWith(exitInvalid), s.Close())
	case wrong != nil:
		a.warnMemory(wrong.Error() + "; the rest of the settings counts")
	}
	return s, nil
}

// memoryOf is the memory of an open tree.
func (a *app) memoryOf(s *state.Store) *memstore.Files {
	return memstore.Open(s, memstore.Options{
		Now: a.now, Kinds: kinds(), Warn: a.warnMemory, Settings: s.Settings(),
	})
}

// warnMemory tells of what is wrong with the memory and keeps nobody from working.
func (a *app) warnMemory(text string) {
	a.warnLine(text)
	if a.log != nil {
		a.log.Warn("memory", "message", text)
	}
}

// refused makes what a store refuses a mistake on the command line, which it is.
func refused(err error) error {
	if errors.Is(err, memstore.ErrInvalid) {
		return badUsage("%v", err)
	}
	return err
}

// fillWho takes from the environment of a run who the agent is and what its work is about, where flags say nothing.
func (a *app) fillWho(agent *string, issue *issueFlag) {
	*agent = cmp.Or(*agent, a.getenv("RECONCILE_AGENT"))
	if n, err := strconv.ParseInt(a.getenv("RECONCILE_ISSUE"), 10, 32); err == nil && n >= 0 && !issue.given {
		issue.number, issue.given = int(n), true
	}
}

func checkWho(command, agent string, issue issueFlag) error {
	if agent == "" || !issue.given {
		return badUsage("reconcile memory %s needs --agent and --issue (0 for none); for example: "+
			"reconcile memory %[1]s --agent engineer --issue 29", command)
	}
	if err := specs.CheckSecret("--agent", agent); err != nil {
		return err
	}
	if err := schemas.CheckName(agent); err != nil {
		return badUsage("--agent %q: %v", agent, err)
	}
	return nil
}

// memoryFilter are the flags that choose observations.
type memoryFilter struct {
	agent, category, since, until    string
	issue                            issueFlag
	stale, superseded, archived, all bool
}

func (m *memoryFilter) bind(a *app, cmd *cobra.Command, f *pflag.FlagSet) {
	f.StringVar(&m.agent, "agent", "", "only what this `AGENT` learned")
	f.Var(&m.issue, "issue", "only what was learned about this issue; 0 for what is about none")
	f.StringVar(&m.category, "category", "", "only this `CATEGORY`: "+strings.Join(schemas.Categories(), ", "))
	f.StringVar(&m.since, "since", "", "only what was learned from this `TIME` on: 30d, 2026-02-27 or an RFC 3339 time")
	f.StringVar(&m.until, "until", "", "only what was learned before this `TIME`")
	f.BoolVar(&m.stale, "stale", false, "only what may be stale: a file that it is about has changed since")
	f.BoolVar(&m.superseded, "superseded", false, "only what a newer observation replaces")
	f.BoolVar(&m.archived, "archived", false, "only what compaction has put away")
	f.BoolVar(&m.all, "all", false, "also what is superseded or archived")
	_ = cmd.RegisterFlagCompletionFunc("agent", a.completeNamesOf(schemas.AgentKind))
	_ = cmd.RegisterFlagCompletionFunc("category",
		cobra.FixedCompletions(schemas.Categories(), cobra.ShellCompDirectiveNoFileComp))
}

// filter reads the flags.
func (m *memoryFilter) filter(now time.Time) (memstore.Filter, error) {
	f := memstore.Filter{
		Agent: m.agent, Category: m.category, Stale: m.stale,
		Superseded: choose(m.superseded, m.all), Archived: choose(m.archived, m.all),
	}
	if m.issue.given {
		f.Issue = &m.issue.number
	}
	if m.category != "" {
		if err := checkCategory(m.category); err != nil {
			return f, err
		}
	}
	var err error
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

func choose(only, all bool) memstore.Choice {
	switch {
	case only:
		return memstore.Only
	case all:
		return memstore.With
	}
	return memstore.Without
}

func checkCategory(word string) error {
	if all := schemas.Categories(); !slices.Contains(all, word) {
		return badUsage("--category %q%s: there are %s", word, didYouMean(word, all), strings.Join(all, ", "))
	}
	return nil
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

// memoryIDs is [arguments] for commands whose arguments are ids of observations. What can be none is a wrong command
// line, which is told before anything is read.
func memoryIDs(cmd *cobra.Command, args []string) error {
	if err := arguments(1, -1, "the id of an observation")(cmd, args); err != nil {
		return err
	}
	return checkIDs(args)
}

func checkIDs(ids []string) error {
	for _, id := range ids {
		if !schemas.IsObservationID(id) {
			return badUsage("%q is not the id of an observation, which is obs-AGENT-ISSUE-MILLISECONDS-SIX as "+
				"obs-engineer-29-1709035200000-a1b2c3; \"reconcile memory list\" lists them", id)
		}
	}
	return nil
}

// unknownID says that there is no such observation, and which was probably meant.
func unknownID(ctx context.Context, m *memstore.Files, id string) error {
	rows, err := m.List(ctx, memstore.Filter{Superseded: memstore.With, Archived: memstore.With})
	if err != nil {
		return err
	}
	hint := "; \"reconcile memory list --all\" lists what there is"
	if len(rows) == 0 {
		hint = "; the memory is empty"
	}
	if near := nearestID(id, rows); near != "" {
		hint = fmt.Sprintf(" (did you mean %q?)", near)
	}
	return fmt.Errorf("observation %s does not exist%s", id, hint)
}

// nearestID looks among the ids that share the agent and issue, as the part of an id that is mistyped or lost is mostly
// its end; and then among all agents' for the same end.
func nearestID(id string, rows []memstore.Row) string {
	cut := strings.LastIndexByte(id, '-')
	head, end := id[:strings.LastIndexByte(id[:cut], '-')], id[cut:]
	var near []string
	for i := range rows {
		if strings.HasPrefix(rows[i].ID, head+"-") || strings.HasSuffix(rows[i].ID, end) {
			near = append(near, rows[i].ID)
		}
	}
	return schemas.Nearest(id, near)
}

// named puts an unknown id of several into words.
func (a *app) named(ctx context.Context, m *memstore.Files, ids []string, err error) error {
	if !errors.Is(err, memstore.ErrUnknown) {
		return err
	}
	for _, id := range ids {
		if _, err := m.ByID(ctx, id); errors.Is(err, memstore.ErrUnknown) {
			return unknownID(ctx, m, id)
		}
	}
	return err
}

// completeMemory offers the ids of observations that begin with what was typed.
func (a *app) completeMemory(
	cmd *cobra.Command, args []string, typed string,
) ([]cobra.Completion, cobra.ShellCompDirective) {
	const most = 200 // more than a shell shows
	var out []cobra.Completion
	err := a.withMemory(func(_ *state.Store, m *memstore.Files) error {
		rows, err := m.List(cmd.Context(), memstore.Filter{Superseded: memstore.With})
		for i := 0; i < len(rows) && len(out) < most; i++ {
			if r := &rows[i]; strings.HasPrefix(r.ID, typed) && !slices.Contains(args, r.ID) {
				out = append(out, cobra.CompletionWithDesc(r.ID, render.Cut(render.Line(r.Summary), 60)))
			}
		}
		return err
	})
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return out, cobra.ShellCompDirectiveNoFileComp
}
