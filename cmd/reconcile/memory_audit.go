package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/memstore"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers/memory"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

const memoryAuditLong = `Look for what should not be in the memory, or not in this way:

  exact       observations with the same content
  near        observations that say the same in nearly the same words
  stale       observations about files that have changed since
  superseded  observations that were recalled together with what replaces them: whoever did had both
  secrets     observations with a secret or private text in them, which is not repeated
  unused      observations that are old and were never recalled

More than a flag allows ends the command with 1, so that CI can watch over the memory; -1 allows any number. --since
leaves out what was learned, or recalled, before: so one can go on from what cannot be undone.`

// auditOptions are the flags of audit: how many of each sort are allowed, -1 for any number.
type auditOptions struct {
	exact, near, stale, superseded, secrets, unused int
	unusedAfter, since                              string
}

func newMemoryAuditCmd(a *app) *cobra.Command {
	o := &auditOptions{}
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Look for duplicates, stale notes, secrets and what is never recalled",
		Long:  memoryAuditLong,
		Example: "  reconcile memory audit\n" +
			"  reconcile memory audit --max-exact 0 --max-near 10 --max-stale 50 -o json",
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.memoryAudit(cmd.Context(), *o) },
	}
	f := cmd.Flags()
	f.IntVar(&o.exact, "max-exact", -1, "allow `N` groups of exact duplicates")
	f.IntVar(&o.near, "max-near", -1, "allow `N` groups of near duplicates")
	f.IntVar(&o.stale, "max-stale", -1, "allow `N` observations that may be stale")
	f.IntVar(&o.superseded, "max-superseded", 0, "allow `N` superseded observations that were recalled nevertheless")
	f.IntVar(&o.secrets, "max-secrets", 0, "allow `N` observations with secrets")
	f.IntVar(&o.unused, "max-unused", -1, "allow `N` observations that were never recalled")
	f.StringVar(&o.unusedAfter, "unused-after", "30d", "from what `AGE` on one counts as never recalled: 30d or 24h")
	f.StringVar(&o.since, "since", "", "only what was learned or recalled from this `TIME` on: 30d, 2026-02-27 or an "+
		"RFC 3339 time")
	return cmd
}

// auditReport is what audit prints for machines.
type auditReport struct {
	memory.Audit
	// Past says what there is too much of.
	Past []string `json:"past"`
}

func (a *app) memoryAudit(ctx context.Context, o auditOptions) error {
	age, ok := parseLong(o.unusedAfter)
	if !ok && o.unusedAfter != "0" {
		return badUsage("--unused-after %q: write a length of time like 30d, 2w or 24h, or 0", o.unusedAfter)
	}
	since, err := parseTime("--since", o.since, a.now())
	if err != nil {
		return err
	}
	return a.withMemory(func(_ *state.Store, m *memstore.Files) error {
		in := memory.Audited{Now: a.now(), Unused: age, Since: since, Stale: m.Stale}
		if err := gather(ctx, m, &in); err != nil {
			return err
		}
		r := auditReport{Audit: memory.NewAudit(in), Past: []string{}}
		for _, s := range auditSorts(&r.Audit, o) {
			if s.past() {
				r.Past = append(r.Past, fmt.Sprintf("%s: %d, at most %d allowed", s.name, s.found, s.most))
			}
		}
		return errors.Join(a.printAudit(r, o), pastBounds(r.Past))
	})
}

// gather reads the whole memory.
func gather(ctx context.Context, m *memstore.Files, in *memory.Audited) (err error) {
	if in.Records, err = m.Records(); err != nil {
		return err
	}
	return m.Each(ctx, func(o *schemas.Observation) error {
		in.Observations = append(in.Observations, *o)
		return nil
	})
}

// auditSort is one of the things that an audit looks for.
type auditSort struct {
	name, about string
	found, most int
	lines       []string // one for each, for people
}

func auditSorts(r *memory.Audit, o auditOptions) []auditSort {
	return []auditSort{
		{"exact", "groups of exact duplicates", len(r.Exact), o.exact, groupLines(r.Exact)},
		{"near", "groups of near duplicates", len(r.Near), o.near, groupLines(r.Near)},
		{"stale", "may be stale", len(r.Stale), o.stale, reasonLines(r.Stale)},
		{"superseded", "recalled though superseded", len(r.Superseded), o.superseded, reasonLines(r.Superseded)},
		{"secrets", "hold secrets or private text", len(r.Secrets), o.secrets, reasonLines(r.Secrets)},
		{"unused", "never recalled", len(r.Unused), o.unused, r.Unused},
	}
}

func groupLines(groups []memory.Duplicates) (out []string) {
	for _, g := range groups {
		out = append(out, strings.Join(g, " "))
	}
	return out
}

func reasonLines(reasons []memory.Reason) (out []string) {
	for _, r := range reasons {
		out = append(out, r.ID+": "+r.Reason)
	}
	return out
}

// printAudit prints how many there are of each sort, and then which.
func (a *app) printAudit(r auditReport, o auditOptions) error {
	if a.global.output != formatTable {
		return a.print(r)
	}
	t := render.NewTable(a.palette(), "SORT", "FOUND", "ALLOWED", "WHAT")
	sorts := auditSorts(&r.Audit, o)
	for _, s := range sorts {
		found, allowed := render.Cell{Text: strconv.Itoa(s.found)}, "any"
		if s.most >= 0 {
			allowed = strconv.Itoa(s.most)
		}
		if s.past() {
			found.Color = render.Red
		}
		t.Cells(render.Cell{Text: s.name}, found, render.Cell{Text: allowed}, render.Cell{Text: s.about})
	}
	if err := t.Write(a.stdout); err != nil {
		return err
	}
	for _, s := range sorts {
		s.list(a.stdout)
	}
	return nil
}

func (s *auditSort) past() bool { return s.most >= 0 && s.found > s.most }

// list prints what was found of a sort; of many the first.
func (s *auditSort) list(w io.Writer) {
	const most = 20
	if len(s.lines) > 0 {
		fmt.Fprintf(w, "\n%s: %s\n", s.name, s.about)
	}
	for _, line := range s.lines[:min(len(s.lines), most)] {
		fmt.Fprintln(w, "  "+clean(line))
	}
	if more := len(s.lines) - most; more > 0 {
		fmt.Fprintf(w, "  and %d more; -o json has all\n", more)
	}
}
