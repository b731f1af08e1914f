package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
)

func newMemoryVerifyCmd(a *app) *cobra.Command {
	by := ""
	cmd := &cobra.Command{
		Use:   "verify ID…",
		Short: "Confirm that observations are still true of their files",
		Long: `Confirm that observations are still true of the present content of their files. They no longer count as stale, until a
file changes again.`,
		Example: "  reconcile memory verify obs-engineer-29-1709035200000-a1b2c3",
		Args:    arguments(1, -1, "the id of an observation"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := ops.VerifyMemory(cmd.Context(), a.env(), ops.VerifyMemoryRequest{IDs: args, By: by}); err != nil {
				return err
			}
			return a.printDone(args, "verified")
		},
		ValidArgsFunction: a.completeMemory,
	}
	bindBy(cmd, &by)
	return cmd
}

func newMemoryRemoveCmd(a *app) *cobra.Command {
	q := ops.RemoveMemoryRequest{}
	cmd := &cobra.Command{
		Use:   "remove ID…",
		Short: "Remove observations from the memory",
		Long: `Remove observations from the memory. A record in state/memory/records/ prevents them from returning from the specs; the
text stays in the spec and in git. Delete the spec's file to remove it there. The originals of a compacted observation
remain in the archive, where search and list find them with --archived or --all; undoing the compaction restores them.
--with-originals removes them, too.`,
		Example: "  reconcile memory remove obs-engineer-29-1709035200000-a1b2c3 --reason \"was wrong\"\n" +
			"  reconcile memory remove obs-engineer-29-1709035200000-d4e5f6 --with-originals",
		Args: arguments(1, -1, "the id of an observation"),
		RunE: func(cmd *cobra.Command, args []string) error {
			q.IDs = args
			return a.memoryRemove(cmd.Context(), q)
		},
		ValidArgsFunction: a.completeMemory,
	}
	bindBy(cmd, &q.By)
	cmd.Flags().StringVar(&q.Reason, "reason", "", "the `REASON`, for the record")
	cmd.Flags().BoolVar(&q.Originals, "with-originals", false, "for compacted observations, also remove the originals")
	return cmd
}

func (a *app) memoryRemove(ctx context.Context, q ops.RemoveMemoryRequest) error {
	r, err := ops.RemoveMemory(ctx, a.env(), q)
	if err != nil {
		return err
	}
	if r.Archived > 0 {
		a.note("%s of them remain in the archive: \"reconcile memory list --archived\" lists them, and "+
			"--with-originals removes them, too", render.Plural(r.Archived, "original"))
	}
	return a.printDone(r.IDs, "removed")
}

func newMemoryRebuildCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "rebuild",
		Short: "Rebuild the memory's files from the specs and records",
		Long: `Rebuild state/memory/ from the specs and records: all issue files, the archive, the manifest, and the local index. A run
detects missing, damaged or outdated files of the memory; this command trusts none of them. Fields of other programs in an
issue file are kept.`,
		Example: "  reconcile memory rebuild",
		Args:    arguments(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.memoryRebuild(cmd.Context()) },
	}
}

func (a *app) memoryRebuild(ctx context.Context) error {
	r, err := ops.RebuildMemory(ctx, a.env())
	return a.result(r, err, func() error {
		for _, w := range r.Warnings {
			a.warnLine(w)
		}
		change := "nothing had to be changed"
		if r.Wrote {
			change = "files were written"
		}
		_, err = fmt.Fprintf(a.stdout, "rebuilt %s of %s in %s; %s\n", render.Plural(r.Observations, "observation"),
			render.Plural(r.Issues, "issue"), r.Took, change)
		return err
	})
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
		Long: `Merge related observations of an issue into fewer; without --issue, of all issues without new observations for
memory.compactAfterDays (90 days), which a run does automatically. Every decision keeps its text. The originals are moved
to state/memory/archive/, and --undo restores them. Compaction is deterministic: the same files give the same bytes.`,
		Example: "  reconcile memory compact\n  reconcile memory compact --issue 29\n" +
			"  reconcile memory compact --issue 29 --undo",
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.memoryCompact(cmd.Context(), *o) },
	}
	cmd.Flags().Var(&o.issue, "issue", "the issue; 0 for what is about none")
	cmd.Flags().BoolVar(&o.undo, "undo", false, "restore the originals of the last compaction of the issue")
	return cmd
}

func (a *app) memoryCompact(ctx context.Context, o compactOptions) error {
	done, err := ops.CompactMemory(ctx, a.env(), ops.CompactMemoryRequest{Issue: o.issue.pointer(), Undo: o.undo})
	return a.result(done, err, func() error {
		if len(done) == 0 && !o.issue.given {
			a.note("no issue is due; --issue N compacts one that is not")
		}
		t := render.NewTable(a.palette(), "ISSUE", "BEFORE", "AFTER", "ARCHIVED", "RECORD")
		for _, c := range done {
			t.Row(fmt.Sprintf("#%d", c.Issue), fmt.Sprint(c.Before), fmt.Sprint(c.After), fmt.Sprint(c.Archived), c.Record)
		}
		return t.Write(a.stdout)
	})
}
