package main

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/schemas"
)

func newDescribeCmd(a *app) *cobra.Command {
	q := &ops.DescribeRequest{}
	limit := 0
	history := false
	cmd := &cobra.Command{
		Use:   "describe KIND/NAME [NODE]",
		Short: "Show all about one object or node: why it is not ready, what comes next; with --history what changed",
		Long: `Show all about one object: its spec, its status, why it is not ready, and when it is decided again. Of a DAG, also about one
of its nodes: what it runs, its attempts, what there is to approve.

` + historyLong,
		Example: "  reconcile describe dag/checks\n" +
			"  reconcile describe dag/checks unit_tests\n" +
			"  reconcile describe session/health -o json\n" +
			"  reconcile describe dag/checks --history -n 5",
		Args: arguments(1, 3, "an object"),
		RunE: func(cmd *cobra.Command, args []string) error {
			args = withRef(args)
			q.Object = args[0]
			switch {
			case len(args) > 2:
				return badUsage("describe takes KIND/NAME and a NODE, not %q", args[2])
			case !history && cmd.Flags().Changed("limit"):
				return badUsage("--limit is about --history")
			case history && len(args) > 1:
				return badUsage("--history is about whole objects; leave out %q", args[1])
			case history:
				return a.history(cmd.Context(), ops.HistoryRequest{Object: q.Object, At: cmp.Or(q.At, "HEAD"), Limit: limit})
			case len(args) > 1:
				return a.describeNode(cmd.Context(), *q, args[1])
			}
			return a.describe(cmd.Context(), *q)
		},
		ValidArgsFunction: a.completeNodes(),
	}
	a.atFlag(cmd, &q.At)
	cmd.Flags().BoolVar(&history, "history", false, "list the commits that changed the object instead")
	cmd.Flags().IntVarP(&limit, "limit", "n", 20, "with --history: the latest `N` commits")
	return cmd
}

func (a *app) describe(ctx context.Context, q ops.DescribeRequest) error {
	d, err := ops.Describe(ctx, a.env(), q)
	return a.result(d, err, func() error {
		a.noteInterrupted(d.Entry.Ref, d.Interrupted)
		return render.Describe(a.stdout, a.palette(), render.Description{Entry: d.Entry, Details: d.Details, Path: d.Path, Why: d.Why, Referrers: d.Referrers, Gates: d.Gates, Held: d.Held, Estimate: d.Estimate, Origins: d.Origins, Pipelines: d.Pipelines,
			Missing: d.OutputsMissing, Changed: d.OutputsChanged}, a.now())
	})
}

func (a *app) describeNode(ctx context.Context, q ops.DescribeRequest, node string) error {
	v, err := ops.DescribeNode(ctx, a.env(), q, node)
	return a.result(v, err, func() error { return render.DescribeNode(a.stdout, a.palette(), &v, a.now()) })
}

const historyLong = `With --history: list the commits that changed the spec or the status of the object, newest first: which fields of the
spec, from which phase to which, and whether it was ready. Of a merged branch the merge is listed. A commit of reconcile names
the commit that it had read, its input. A spec file that was renamed is followed as far as it has its present name.`

// newHistoryCmd returns the former name of describe --history.
func newHistoryCmd(a *app) *cobra.Command {
	limit := 0
	at := ""
	cmd := &cobra.Command{
		Use:     "history KIND/NAME",
		Short:   "List the commits that changed an object",
		Long:    historyLong,
		Example: "  reconcile describe dag/checks --history",
		Args:    arguments(1, 2, "an object"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.history(cmd.Context(), ops.HistoryRequest{Object: strings.Join(args, "/"), At: at, Limit: limit})
		},
		ValidArgsFunction: a.completeObjects(false),
	}
	cmd.Flags().IntVarP(&limit, "limit", "n", 20, "tell of the latest `N` commits")
	cmd.Flags().StringVar(&at, "at", "HEAD", "go back from `COMMIT`: a hash, a branch, a tag, HEAD~3")
	return cmd
}

func (a *app) history(ctx context.Context, q ops.HistoryRequest) error {
	r, err := ops.History(ctx, a.env(), q)
	if err != nil {
		return err
	}
	if r.Shallow {
		a.note("the clone is shallow: what is older is not here; git fetch --unshallow brings it")
	}
	switch {
	case a.global.output != formatTable:
		return a.print(r.Changes)
	case len(r.Changes) == 0 && r.Shallow:
		return nil
	case len(r.Changes) == 0:
		return fmt.Errorf("no commit up to %s has %s: neither %s", q.At, r.Ref, strings.Join(r.Paths, " nor "))
	}
	t := render.NewTable(a.palette(), "COMMIT", "WHEN", "BY", "PHASE", "READY", "CHANGED")
	for _, c := range r.Changes {
		by := c.Author
		if c.Input != "" {
			by = "reconcile, from " + short(c.Input)
		}
		t.Cells(render.Cell{Text: short(c.Commit)}, render.Cell{Text: c.When.Format("2006-01-02 15:04:05Z")},
			render.Cell{Text: clean(by)}, render.Word(c.Phase.String()), render.Word(c.Ready.String()), render.Word(clean(changedFields(&c))))
	}
	return t.Write(a.stdout)
}

func short(hash string) string { return hash[:min(len(hash), 8)] }

// changedFields names the fields that a commit changed, and changes of whole files.
func changedFields(c *ops.Change) string {
	var parts []string
	for _, f := range c.Spec {
		parts = append(parts, f.Field)
	}
	out := schemas.Shorten(parts, 5)
	if c.Note != "" {
		out = strings.TrimPrefix(out+"; "+c.Note, "; ")
	}
	return out
}
