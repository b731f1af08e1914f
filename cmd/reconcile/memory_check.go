package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/schemas"
)

const memoryEvalLong = `Run the questions of a gold set with known answers on the memory, and measure the quality of the results.

The set has a JSON object on each line: {"question": "why no ORM", "expect": ["obs-engineer-18-1768226700000-a1b2c3"]}.
The metrics are means over all questions:

  recall@K   the share of the expected observations that are among the first K results
  MRR        1 divided by the rank of the first one, if it is among the first ten
  nDCG@10    the discounted cumulative gain of the first ten, divided by the highest possible one
  tokens     the tokens of the full results, up to the last expected one; all ten if one is missing

For an observation that compaction merged with others, the merged one counts. The exit code is 1 if a metric exceeds the
bound of a flag, for use in CI. --by recall recalls for an agent that starts with the question; no recall is recorded.`

func newMemoryEvalCmd(a *app) *cobra.Command {
	q, gold := ops.EvalMemoryRequest{}, ""
	cmd := &cobra.Command{
		Use:   "eval --gold FILE",
		Short: "Measure how well the memory finds known answers",
		Long:  memoryEvalLong,
		Example: "  reconcile memory eval --gold questions.jsonl\n" +
			"  reconcile memory eval --gold questions.jsonl --min-recall5 0.9 --min-ndcg 0.8 -o json",
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if gold == "" {
				return badUsage("reconcile memory eval needs a gold set; for example: reconcile memory eval --gold questions.jsonl")
			}
			q.Gold = a.textFrom(cmd.Context(), gold)
			q.Gold.Name = gold
			r, err := ops.EvalMemory(cmd.Context(), a.env(), q)
			err = a.result(r, err, func() error { return render.MemoryEvaluation(a.stdout, a.palette(), r.Evaluation, r.Answers) })
			return errors.Join(err, pastBounds(r.Past))
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

// pastBounds is the error of a command whose result violates its bounds; nil if it does not.
func pastBounds(past []string) error {
	if len(past) == 0 {
		return nil
	}
	return errors.New(strings.Join(past, "; "))
}

const memoryAuditLong = `Find problems in the memory:

  exact       observations with the same content
  near        observations with nearly the same words
  stale       observations about files that have changed since
  superseded  observations that were recalled together with their replacement
  secrets     observations with a secret or private text, which is not printed
  unused      old observations that were never recalled

The exit code is 1 if a flag's limit is exceeded, for use in CI; -1 means no limit. --since ignores observations that were
learned or recalled earlier, so that old findings need not be fixed.`

func newMemoryAuditCmd(a *app) *cobra.Command {
	q := ops.AuditMemoryRequest{}
	unusedAfter, since := "", ""
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Find duplicates, stale observations, secrets and unused observations",
		Long:  memoryAuditLong,
		Example: "  reconcile memory audit\n" +
			"  reconcile memory audit --max-exact 0 --max-near 10 --max-stale 50 -o json",
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			var ok bool
			if q.Unused, ok = ops.ParseAge(unusedAfter); !ok && unusedAfter != "0" {
				return badUsage("--unused-after %q: write a length of time like 30d, 2w or 24h, or 0", unusedAfter)
			}
			if q.Since, err = ops.ParseTime("since", since, a.now()); err != nil {
				return err
			}
			r, err := ops.AuditMemory(cmd.Context(), a.env(), q)
			err = a.result(r, err, func() error { return render.MemoryAudit(a.stdout, a.palette(), r.Sorts(q.Most)) })
			return errors.Join(err, pastBounds(r.Past))
		},
	}
	f := cmd.Flags()
	f.IntVar(&q.Most.Exact, "max-exact", -1, "allow `N` groups of exact duplicates")
	f.IntVar(&q.Most.Near, "max-near", -1, "allow `N` groups of near duplicates")
	f.IntVar(&q.Most.Stale, "max-stale", -1, "allow `N` observations that may be stale")
	f.IntVar(&q.Most.Superseded, "max-superseded", 0, "allow `N` superseded observations that were recalled nevertheless")
	f.IntVar(&q.Most.Secrets, "max-secrets", 0, "allow `N` observations with secrets")
	f.IntVar(&q.Most.Unused, "max-unused", -1, "allow `N` observations that were never recalled")
	hideDefaults(f, "max-exact", "max-near", "max-stale", "max-unused")
	f.StringVar(&unusedAfter, "unused-after", "30d", "the `AGE` from which an observation counts as unused: 30d or 24h")
	f.StringVar(&since, "since", "", "only observations learned or recalled since this `TIME`: 30d, 2026-02-27 or an "+
		"RFC 3339 time")
	return cmd
}

func newMemoryScanCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "scan [PATH…]",
		Short: "Find secrets in the tree's specs and state",
		Long: `Find secrets and private text in all files that reconcile reads and writes: reconcile.yaml, and the folders of specs and
state, with the memory, its archive and records, and the runs. Arguments name other files: "scan ." scans the whole work
tree without .git and .reconcile. Links are not followed. Binary files and files larger than 256 MiB are reported as
skipped. Each finding is reported with its place and rule, and its text is not printed. Lines with the comment
` + ops.AllowSecret + ` are ignored.

The exit code is 1 if there are findings. Committed secrets stay in git's history: replace them where they are used.`,
		Example: "  reconcile memory scan\n" +
			"  reconcile memory scan . -o json\n" +
			"  reconcile memory scan -o sarif > secrets.sarif",
		RunE: func(cmd *cobra.Command, args []string) error {
			r, err := ops.ScanSecrets(cmd.Context(), a.env(), args)
			if err != nil {
				return err
			}
			if a.global.output != formatJSON && a.global.output != formatYAML {
				a.warnSkipped(r.Skipped)
			}
			err = a.problemReport(r, r.Problems(), func() error { return a.printSecrets(r) })
			if err == nil && len(r.Secrets) > 0 {
				err = exitWith(exitFailure)
			}
			return err
		},
	}
	a.outputFlag(cmd, cmd.Flags(), formatTable, formatJSON, formatYAML, formatSARIF, formatGitHub)
	return cmd
}

// warnSkipped warns of files that were not scanned.
func (a *app) warnSkipped(files []string) {
	const listedSkips = 20
	for _, s := range files[:min(len(files), listedSkips)] {
		a.warnLine("skipped: " + s)
	}
	if more := len(files) - listedSkips; more > 0 {
		fmt.Fprintf(a.stderr, "warning: and %s more; -o json has all\n", schemas.Count(more, "file"))
	}
}

func (a *app) printSecrets(r ops.SecretScan) error {
	p, verdict := a.palette(), "no secrets"
	for _, f := range r.Secrets {
		a.printf("%s: %s\n", p.Paint(render.Red, clean(f.Place.String())), f.Rule)
	}
	if len(r.Secrets) > 0 {
		verdict = schemas.Count(len(r.Secrets), "secret") +
			"; remove them, and replace them where they are used: git's history keeps what was committed"
	}
	a.conclude(len(r.Secrets) > 0, "%s scanned, %s", schemas.Count(r.Files, "file"), verdict)
	return nil
}

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
			return a.printDone(args, "verified", ops.VerifyMemory(cmd.Context(), a.env(), ops.VerifyMemoryRequest{IDs: args, By: by}))
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
			r, err := ops.RemoveMemory(cmd.Context(), a.env(), q)
			if err == nil && r.Archived > 0 {
				a.note("%s of them remain in the archive: \"reconcile memory list --archived\" lists them, and "+
					"--with-originals removes them, too", schemas.Count(r.Archived, "original"))
			}
			return a.printDone(r.IDs, "removed", err)
		},
		ValidArgsFunction: a.completeMemory,
	}
	bindBy(cmd, &q.By)
	cmd.Flags().StringVar(&q.Reason, "reason", "", "the `REASON`, for the record")
	cmd.Flags().BoolVar(&q.Originals, "with-originals", false, "for compacted observations, also remove the originals")
	return cmd
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
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := ops.RebuildMemory(cmd.Context(), a.env())
			return a.result(r, err, func() error {
				for _, w := range r.Warnings {
					a.warnLine(w)
				}
				change := "nothing had to be changed"
				if r.Wrote {
					change = "files were written"
				}
				a.printf("rebuilt %s of %s in %s; %s\n", schemas.Count(r.Observations, "observation"), schemas.Count(r.Issues, "issue"), r.Took, change)
				return nil
			})
		},
	}
}

func newCompactCmd(a *app) *cobra.Command {
	q, issue := ops.CompactMemoryRequest{}, issueFlag{}
	cmd := &cobra.Command{
		Use:   "compact [--issue N]",
		Short: "Merge related observations into fewer, or undo that",
		Long: `Merge related observations of an issue into fewer; without --issue, of all issues without new observations for
memory.compactAfterDays (90 days), which a run does automatically. Every decision keeps its text. The originals are moved
to state/memory/archive/, and --undo restores them. Compaction is deterministic: the same files give the same bytes.`,
		Example: "  reconcile memory compact\n  reconcile memory compact --issue 29\n" +
			"  reconcile memory compact --issue 29 --undo",
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			q.Issue = issue.pointer()
			done, err := ops.CompactMemory(cmd.Context(), a.env(), q)
			return a.result(done, err, func() error {
				none := ""
				if q.Issue == nil {
					none = "no issue is due; --issue N compacts one that is not"
				}
				return a.table(len(done), none, func(i int) []string {
					c := done[i]
					return []string{fmt.Sprintf("#%d", c.Issue), fmt.Sprint(c.Before), fmt.Sprint(c.After), fmt.Sprint(c.Archived), c.Record}
				}, "ISSUE", "BEFORE", "AFTER", "ARCHIVED", "RECORD")
			})
		},
	}
	cmd.Flags().Var(&issue, "issue", "the issue; 0 for what is about none")
	cmd.Flags().BoolVar(&q.Undo, "undo", false, "restore the originals of the last compaction of the issue")
	return cmd
}
