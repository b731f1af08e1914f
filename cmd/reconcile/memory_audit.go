package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
)

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
			if q.Unused, ok = parseLong(unusedAfter); !ok && unusedAfter != "0" {
				return badUsage("--unused-after %q: write a length of time like 30d, 2w or 24h, or 0", unusedAfter)
			}
			if q.Since, err = parseTime("--since", since, a.now()); err != nil {
				return err
			}
			return a.memoryAudit(cmd.Context(), q)
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

func (a *app) memoryAudit(ctx context.Context, q ops.AuditMemoryRequest) error {
	r, err := ops.AuditMemory(ctx, a.env(), q)
	if err != nil {
		return err
	}
	if a.global.output != formatTable {
		err = a.print(r)
	} else {
		err = render.MemoryAudit(a.stdout, a.palette(), r.Sorts(q.Most))
	}
	return errors.Join(err, pastBounds(r.Past))
}
