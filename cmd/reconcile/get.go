package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers/graph"
	"reconcile.dev/reconcile/controllers/readiness"
	"reconcile.dev/reconcile/controllers/settle"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

func newGetCmd(a *app) *cobra.Command {
	q, follow := &ops.GetRequest{}, false
	cmd := &cobra.Command{
		Use:   "get [KIND[,KIND…] | KIND/NAME…]",
		Short: "List objects: all that are not ready, those of a kind, or those that are named",
		Long: `List objects. Without an argument: how many of each kind there are, and those that are not ready.

-o json and yaml print spec and status as one object, several objects as a list; -o jsonpath={…} prints what a template
of kubectl picks of that. -o name prints KIND/NAME, -o wide also labels, files and reasons.

--watch stays, and prints each object again whose spec or status changes, until Ctrl-C or until nobody reads any more.`,
		Example: "  reconcile get\n" +
			"  reconcile get dags -l team=core\n" +
			"  reconcile get sessions,dags\n" +
			"  reconcile get dag/checks -o yaml\n" +
			"  reconcile get dags -o jsonpath='{.items[*].status.phase}'\n" +
			"  reconcile get dags --watch\n" +
			"  reconcile get dags --at HEAD~3",
		Args: arguments(0, -1, "a kind or kind/name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			q.What = args
			if follow {
				return a.followObjects(cmd.Context(), *q)
			}
			return a.get(cmd.Context(), *q)
		},
		ValidArgsFunction: a.completeObjects(true),
	}
	a.getFormats(cmd)
	cmd.Flags().BoolVarP(&follow, "watch", "w", false, "stay, and print objects again when they change")
	cmd.Flags().StringVarP(&q.Selector, "selector", "l", "", "only objects with these labels: `a=b,c!=d,e,!f,g in (h,i)`")
	a.atFlag(cmd, &q.At)
	cmd.AddCommand(newGetFactsCmd(a))
	return cmd
}

// Formats of get in addition to those of every command.
const (
	formatName     = "name"
	formatWide     = "wide"
	jsonPathPrefix = "jsonpath="
)

func (a *app) getFormats(cmd *cobra.Command) {
	formats := []string{formatTable, formatJSON, formatYAML, formatName, formatWide}
	cmd.Flags().VarP(&choice{value: &a.global.output, allowed: formats, prefix: jsonPathPrefix}, "output", "o",
		"print as `FORMAT`: "+strings.Join(formats, ", ")+", "+jsonPathPrefix+"TEMPLATE")
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(append(formats, jsonPathPrefix), cobra.ShellCompDirectiveNoFileComp))
}

// atFlag binds --at to a command that reads the tree.
func (a *app) atFlag(cmd *cobra.Command, at *string) {
	cmd.Flags().StringVar(at, "at", "", "look at the tree as it is in `COMMIT`: a hash, a branch, a tag, HEAD~3")
}

func (a *app) get(ctx context.Context, q ops.GetRequest) error {
	q.Wide = a.global.output == formatWide
	r, err := ops.Get(ctx, a.env(), q)
	if err != nil {
		return err
	}
	if n := len(r.Nameless); n > 0 {
		a.note("not listed: %s of files in which no object can be named, the first in %s; \"reconcile validate\" shows them",
			schemas.Count(n, "problem"), r.Nameless[0].Place)
	}
	switch {
	case a.global.output == formatName:
		a.printNames(r)
		return nil
	case a.global.output == formatTable || a.global.output == formatWide:
		return a.getTables(r)
	case r.Single:
		return a.printAs(ops.NewObject(r.Entries[0]))
	}
	return a.printAs(ops.NewObjectList(r.Entries))
}

func (a *app) printNames(r ops.GetResult) {
	for _, e := range r.Entries {
		a.printf("%s\n", clean(e.Ref.String()))
	}
}

// printAs is print with support for jsonpath.
func (a *app) printAs(v any) error {
	template, ok := strings.CutPrefix(a.global.output, jsonPathPrefix)
	if !ok {
		return a.print(v)
	}
	text, err := render.JSONPath(v, template)
	if err != nil {
		return badUsage("-o %s: %v; write a template of kubectl, as {.status.phase}", a.global.output, err)
	}
	a.printf("%s", render.EndLine(clean(text)))
	return nil
}

// followObjects prints objects, and changed objects again, until ctx ends or the reader of stdout has gone.
func (a *app) followObjects(ctx context.Context, q ops.GetRequest) error {
	signal.Ignore(syscall.SIGPIPE)
	for r, err := range ops.FollowObjects(ctx, a.env(), q) {
		if err != nil {
			return err
		}
		if err := a.printChanged(r); err != nil {
			return unlessGone(err)
		}
		if unread(a.stdout) {
			return nil
		}
	}
	return nil
}

func (a *app) printChanged(r ops.GetResult) error {
	for _, ref := range r.Gone {
		a.note("%s is gone", ref)
	}
	switch a.global.output {
	case formatTable, formatWide:
		return render.ObjectLines(a.stdout, a.palette(), r.Entries, a.global.output == formatWide)
	case formatName:
		a.printNames(r)
		return nil
	}
	for _, e := range r.Entries {
		if a.global.output == formatYAML {
			a.printf("---\n")
		}
		if err := a.printAs(ops.NewObject(e)); err != nil {
			return err
		}
	}
	return nil
}

func (a *app) getTables(r ops.GetResult) error {
	for _, ref := range slices.SortedFunc(maps.Keys(r.Interrupted), schemas.Ref.Compare) {
		a.noteInterrupted(ref, r.Interrupted[ref])
	}
	switch {
	case r.All:
		return a.overview(r.Table, r.Entries)
	case len(r.Entries) == 0:
		a.note("no %s", strings.Join(r.Kinds, ", "))
	}
	return render.ObjectTables(a.stdout, a.palette(), r.Table, r.Entries, a.global.output == formatWide, a.now())
}

// noteInterrupted reports nodes that ran, or waited for a place, when their process ended or was killed: nothing runs them.
func (a *app) noteInterrupted(ref schemas.Ref, nodes []string) {
	if len(nodes) > 0 {
		a.note("%s: no process here runs %s, which an earlier run left so; the next run goes on", ref, schemas.Shorten(nodes, 5))
	}
}

// overview counts objects by kind, and lists those that are not ready.
func (a *app) overview(table settle.Table, all []*state.Entry) error {
	if len(all) == 0 {
		a.note("%s", a.noObjects())
	}
	if err := render.KindCounts(a.stdout, a.palette(), table, readiness.StandingByKind(slices.Values(all))); err != nil {
		return err
	}
	bad := readiness.NotReady(slices.Values(all), len(all))
	if len(bad) > 0 {
		a.printf("\n")
	}
	return render.StandingTable(a.stdout, a.palette(), bad, len(bad))
}

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
				v, err := ops.DescribeNode(cmd.Context(), a.env(), *q, args[1])
				return a.result(v, err, func() error { return render.DescribeNode(a.stdout, a.palette(), &v, a.now()) })
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

const historyLong = `With --history: list the commits that changed the spec or the status of the object, newest first: which fields of the
spec, from which phase to which, and whether it was ready. Of a merged branch the merge is listed. A commit of reconcile names
the commit that it had read, its input. A spec file that was renamed is followed as far as it has its present name.`

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
	short := func(hash string) string { return hash[:min(len(hash), 8)] }
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

// graphFormats are the output formats of graph.
var graphFormats = map[string]func(io.Writer, graph.Picture) error{
	"mermaid": render.Mermaid,
	"dot":     render.DOT,
	"svg":     render.SVG,
}

func newGraphCmd(a *app) *cobra.Command {
	format := "mermaid"
	formats := []string{"mermaid", "dot", "svg"}
	cmd := &cobra.Command{
		Use:   "graph dag/NAME|workflow/NAME",
		Short: "Draw a DAG with the states of its nodes, or the steps of a workflow",
		Example: "  reconcile graph dag/checks --format svg > checks.svg\n" +
			"  reconcile graph workflow/feature    # mermaid, which GitHub draws in Markdown",
		Args: arguments(1, 2, "a DAG or workflow"),
		RunE: func(cmd *cobra.Command, args []string) error {
			g, err := ops.Graph(cmd.Context(), a.env(), ops.GraphRequest{Object: strings.Join(args, "/")})
			return a.result(g, err, func() error { return graphFormats[format](a.stdout, g) })
		},
		ValidArgsFunction: a.completeObjects(false, schemas.DAGKind, schemas.WorkflowKind),
	}
	choiceFlag(cmd, cmd.Flags(), &format, "format", "draw as `FORMAT`: "+strings.Join(formats, ", "), formats)
	return cmd
}

func newWaitCmd(a *app) *cobra.Command {
	q := &ops.WaitRequest{}
	cmd := &cobra.Command{
		Use:   "wait KIND/NAME…",
		Short: "Wait until objects have a condition or a phase",
		Long: `Wait until all the objects have a condition or a phase. It reads the files that other processes write, and runs nothing
itself. It reports why an object is stalled, and keeps waiting, since the cause may be fixed. At the timeout it exits with 1
and names the objects that it still waits for.`,
		Example: "  reconcile wait dag/checks --timeout 10m\n" +
			"  reconcile wait session/health --for=phase=Completed\n" +
			"  reconcile wait dag/checks --for=condition=Stalled=False",
		Args: arguments(1, -1, "an object"),
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Objects = args
			met, err := ops.Wait(cmd.Context(), a.env(), *q)
			return a.result(met, err, func() error {
				for _, m := range met {
					a.conclude(false, "%s", m)
				}
				return nil
			})
		},
		ValidArgsFunction: a.completeObjects(false),
	}
	cmd.Flags().StringVar(&q.For, "for", "condition=Ready",
		"what to wait for: `condition=NAME[=VALUE]` or phase=NAME")
	cmd.Flags().DurationVar(&q.Timeout, "timeout", 30*time.Second, "wait at most this `DURATION`, for example 5m; 0 checks once")
	return cmd
}
