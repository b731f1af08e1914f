package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine/specs"
	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/state"
)

// doneReport is what verify and remove print for machines.
type doneReport struct {
	IDs []string `json:"ids"`
}

func newMemoryVerifyCmd(a *app) *cobra.Command {
	by := ""
	cmd := &cobra.Command{
		Use:   "verify ID…",
		Short: "Say that observations are still true of the files that they are about",
		Long: `Say that observations are still true of the files that they are about, as these are now. What may be stale is
recalled as before then, until a file changes again.`,
		Example: "  reconcile memory verify obs-engineer-29-1709035200000-a1b2c3",
		Args:    memoryIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withMemory(func(_ *state.Store, m *memstore.Files) error {
				who, err := a.person(by)
				if err != nil {
					return err
				}
				err = m.Verify(cmd.Context(), args, who)
				return a.done(cmd.Context(), m, args, "verified", err)
			})
		},
		ValidArgsFunction: a.completeMemory,
	}
	bindBy(cmd, &by)
	return cmd
}

// removeOptions are the flags of remove.
type removeOptions struct {
	by, reason string
	originals  bool
}

func newMemoryRemoveCmd(a *app) *cobra.Command {
	o := &removeOptions{}
	cmd := &cobra.Command{
		Use:   "remove ID…",
		Short: "Remove observations from the memory",
		Long: `Remove observations from the memory. A record in state/memory/records/ keeps that they were removed, so that they
do not come back from the specs; the text stays in the spec and in git. Delete the spec's file to be rid of that, too.

One that compaction made of others leaves these in the archive, where search and list find them with --archived or --all;
undoing the compaction brings them back. --with-originals removes them instead, and with them what was made of them.`,
		Example: "  reconcile memory remove obs-engineer-29-1709035200000-a1b2c3 --reason \"was wrong\"\n" +
			"  reconcile memory remove obs-engineer-29-1709035200000-d4e5f6 --with-originals",
		Args: memoryIDs,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withMemory(func(_ *state.Store, m *memstore.Files) error {
				return a.memoryRemove(cmd.Context(), m, args, *o)
			})
		},
		ValidArgsFunction: a.completeMemory,
	}
	bindBy(cmd, &o.by)
	cmd.Flags().StringVar(&o.reason, "reason", "", "the `REASON`, for the record")
	cmd.Flags().BoolVar(&o.originals, "with-originals", false, "of what compaction made, remove the originals, too")
	return cmd
}

func (a *app) memoryRemove(ctx context.Context, m *memstore.Files, ids []string, o removeOptions) error {
	who, err := a.person(o.by)
	if err != nil {
		return err
	}
	gone, originals, err := withOriginals(ctx, m, ids)
	if err != nil {
		return a.named(ctx, m, ids, err)
	}
	if !o.originals {
		gone = ids
	}
	if err := m.Remove(ctx, gone, who, a.discreet("--reason", o.reason)); err != nil {
		return a.named(ctx, m, ids, err)
	}
	if o.originals {
		return a.done(ctx, m, append(slices.Clone(ids), originals...), "removed", nil)
	}
	if n := len(originals); n > 0 {
		a.note("%s of what was removed stand in the archive: \"reconcile memory list --archived\" lists them, and "+
			"--with-originals would have removed them, too", render.Plural(n, "original"))
	}
	return a.done(ctx, m, ids, "removed", nil)
}

// withOriginals are the ids with the originals of merged ones in their place, and these originals. What was made of
// observations that are all removed is gone by itself, and its id may come to stand for others of its group.
func withOriginals(ctx context.Context, m *memstore.Files, ids []string) (gone, originals []string, err error) {
	for _, id := range ids {
		o, err := m.ByID(ctx, id)
		if err != nil {
			return nil, nil, err
		}
		derived := false
		for _, original := range o.Compacts {
			_, err := m.ByID(ctx, original)
			if err != nil && !errors.Is(err, memstore.ErrUnknown) {
				return nil, nil, err
			}
			derived = derived || err == nil
			if err == nil && !slices.Contains(slices.Concat(ids, originals), original) {
				originals = append(originals, original)
			}
		}
		if !derived {
			gone = append(gone, id)
		}
	}
	return append(gone, originals...), originals, nil
}

func bindBy(cmd *cobra.Command, by *string) {
	cmd.Flags().StringVar(by, "by", "",
		"the `NAME` of the agent or person that says so (in a run: its agent; default: RECONCILE_AGENT, else the login name)")
}

// person is [app.actor] for --by, checked: in a run without an agent, who is logged in.
func (a *app) person(by string) (string, error) {
	who, err := a.caller().Actor("--by", by)
	if err != nil {
		return "", err
	}
	who = cmp.Or(who, a.caller().Login())
	return who, specs.CheckSecret("--by", who)
}

// done tells that something was done to observations.
func (a *app) done(ctx context.Context, m *memstore.Files, ids []string, what string, err error) error {
	if err != nil {
		return a.named(ctx, m, ids, err)
	}
	if a.global.output != formatTable {
		return a.print(doneReport{IDs: ids})
	}
	for _, id := range ids {
		fmt.Fprintf(a.stdout, "%s: %s\n", id, what)
	}
	return nil
}

func newMemoryRebuildCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "rebuild",
		Short: "Make the memory's files anew from the specs and records",
		Long: `Make state/memory/ anew from the specs and records: all issue files, the archive, the manifest, and the local index.
A run notices by itself when files of the memory are missing, damaged or out of step; this does not trust any of them.
What other programs have written into an issue file stays.`,
		Example: "  reconcile memory rebuild",
		Args:    arguments(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.memoryRebuild(cmd.Context()) },
	}
}

// rebuildReport is what rebuild prints for machines.
type rebuildReport struct {
	Observations int      `json:"observations"`
	Issues       int      `json:"issues"`
	Wrote        bool     `json:"wrote"`
	Took         string   `json:"took"`
	Warnings     []string `json:"warnings"`
}

func (a *app) memoryRebuild(ctx context.Context) error {
	s, t, err := a.load(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	lock, err := s.Lock(ctx)
	if err != nil {
		return err
	}
	m := a.memoryOf(s)
	began := time.Now() // of what is told, not of a record
	settled, err := m.Rebuild(ctx, t)
	if err = errors.Join(err, lock.Release()); err != nil {
		return errors.Join(err, m.Close())
	}
	took := time.Since(began).Round(time.Millisecond)
	r := rebuildReport{Wrote: settled.Wrote, Took: took.String(), Warnings: settled.Warnings}
	stats, err := m.Stats(ctx)
	if err = errors.Join(err, m.Close()); err != nil {
		return err
	}
	r.Observations, r.Issues = stats.TotalObservations, stats.IssueCount
	return a.printRebuilt(r)
}

func (a *app) printRebuilt(r rebuildReport) error {
	if a.global.output != formatTable {
		if r.Warnings == nil {
			r.Warnings = []string{}
		}
		return a.print(r)
	}
	for _, w := range r.Warnings {
		a.warnMemory(w)
	}
	change := "nothing had to be changed"
	if r.Wrote {
		change = "files were written"
	}
	_, err := fmt.Fprintf(a.stdout, "rebuilt %s of %s in %s; %s\n", render.Plural(r.Observations, "observation"),
		render.Plural(r.Issues, "issue"), r.Took, change)
	return err
}

// compactOptions are the flags of compact.
type compactOptions struct {
	issue issueFlag
	undo  bool
}

func newCompactCmd(a *app) *cobra.Command {
	o := &compactOptions{}
	cmd := &cobra.Command{
		Use:   "compact [--issue N]",
		Short: "Merge related observations into fewer, or undo that",
		Long: `Merge related observations of an issue into fewer; without --issue, of all issues that nothing was learned about for
memory.compactAfterDays (90 days), which a run does by itself, too. Every decision keeps its text. The originals go to
state/memory/archive/, and --undo puts them back. Whoever compacts the same files writes the same bytes.`,
		Example: "  reconcile memory compact\n  reconcile memory compact --issue 29\n" +
			"  reconcile memory compact --issue 29 --undo",
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.memoryCompact(cmd.Context(), *o) },
	}
	cmd.Flags().Var(&o.issue, "issue", "the issue; 0 for what is about none")
	cmd.Flags().BoolVar(&o.undo, "undo", false, "put back the originals of the last compaction of the issue")
	return cmd
}

func (a *app) memoryCompact(ctx context.Context, o compactOptions) error {
	if o.undo && !o.issue.given {
		return badUsage("--undo needs --issue: the issue whose last compaction is undone")
	}
	return a.withMemory(func(_ *state.Store, m *memstore.Files) error {
		done, err := o.do(ctx, m)
		if errors.Is(err, memstore.ErrNothing) {
			a.note("%v", err)
			done, err = nil, nil
		}
		if err != nil {
			return err
		}
		for _, c := range done {
			a.logMemory("memory-compacted", slog.Int("issueNumber", c.Issue), slog.Int("before", c.Before),
				slog.Int("after", c.After), slog.String("record", c.Record))
		}
		return a.printCompacted(done, o)
	})
}

func (o *compactOptions) do(ctx context.Context, m *memstore.Files) ([]memstore.Compacted, error) {
	if !o.issue.given {
		return m.CompactDue(ctx)
	}
	one := m.Compact
	if o.undo {
		one = m.Undo
	}
	c, err := one(ctx, o.issue.number)
	return []memstore.Compacted{c}, err
}

func (a *app) printCompacted(done []memstore.Compacted, o compactOptions) error {
	if a.global.output != formatTable {
		if done == nil {
			done = []memstore.Compacted{}
		}
		return a.print(done)
	}
	if len(done) == 0 && !o.issue.given {
		a.note("no issue is due; --issue N compacts one that is not")
	}
	t := render.NewTable(a.palette(), "ISSUE", "BEFORE", "AFTER", "ARCHIVED", "RECORD")
	for _, c := range done {
		t.Row(fmt.Sprintf("#%d", c.Issue), fmt.Sprint(c.Before), fmt.Sprint(c.After), fmt.Sprint(c.Archived), c.Record)
	}
	return t.Write(a.stdout)
}
