package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

func newGetCmd(a *app) *cobra.Command {
	q := &ops.GetRequest{}
	cmd := &cobra.Command{
		Use:   "get [KIND[,KIND…] | KIND/NAME…]",
		Short: "List objects: all that are not ready, those of a kind, or those that are named",
		Long: `List objects. Without an argument: how many of each kind there are, and those that are not ready.

-o json and yaml print spec and status as one object, several objects as a list.`,
		Example: "  reconcile get\n" +
			"  reconcile get dags -l team=core\n" +
			"  reconcile get sessions,dags\n" +
			"  reconcile get dag/checks -o yaml\n" +
			"  reconcile get dags --at HEAD~3",
		Args:              arguments(0, -1, "a kind or kind/name"),
		RunE:              func(cmd *cobra.Command, args []string) error { q.What = args; return a.get(cmd.Context(), *q) },
		ValidArgsFunction: a.completeObjects(true),
	}
	cmd.Flags().StringVarP(&q.Selector, "selector", "l", "", "only objects with these labels: `a=b,c!=d,e,!f`")
	a.atFlag(cmd, &q.At)
	return cmd
}

// atFlag binds --at to a command that looks at the tree.
func (a *app) atFlag(cmd *cobra.Command, at *string) {
	cmd.Flags().StringVar(at, "at", "", "look at the tree as it is in `COMMIT`: a hash, a branch, a tag, HEAD~3")
}

func (a *app) get(ctx context.Context, q ops.GetRequest) error {
	r, err := ops.Get(ctx, a.env(), q)
	switch {
	case err != nil:
		return err
	case a.global.output == formatTable:
		return a.getTables(r)
	case r.Single:
		return a.print(ops.NewObject(r.Entries[0]))
	}
	return a.print(ops.NewObjectList(r.Entries))
}

func (a *app) getTables(r ops.GetResult) error {
	if r.Nameless > 0 {
		a.note("not listed: %s of files in which no object can be named; \"reconcile validate\" shows them",
			render.Plural(r.Nameless, "problem"))
	}
	for _, ref := range slices.SortedFunc(maps.Keys(r.Interrupted), schemas.Ref.Compare) {
		a.noteInterrupted(ref, r.Interrupted[ref])
	}
	switch {
	case r.All:
		return a.overview(r.Table, r.Entries)
	case len(r.Entries) == 0:
		a.note("no %s", strings.Join(r.Kinds, ", "))
	}
	return render.ObjectTables(a.stdout, a.palette(), r.Table, r.Entries, a.now())
}

// noteInterrupted tells of nodes that were running when their process was killed: their states are those that it left.
func (a *app) noteInterrupted(ref schemas.Ref, nodes []string) {
	if len(nodes) > 0 {
		a.note("%s: no process here runs %s, which a run that was killed left so; the next run goes on", ref, schemas.Shorten(nodes, 5))
	}
}

// overview counts objects by kind, and lists those that are not ready.
func (a *app) overview(table controllers.Table, all []*state.Entry) error {
	counts := controllers.StandingByKind(slices.Values(all))
	t := render.NewTable(a.palette(), "KIND", "TOTAL", "READY", "WAITING", "FAILED", "INVALID")
	for _, k := range table {
		if c := counts[k.Name]; c.Total() > 0 {
			t.Row(k.Plural, strconv.Itoa(c.Total()), strconv.Itoa(c.Ready), strconv.Itoa(c.Waiting), strconv.Itoa(c.Failed),
				strconv.Itoa(c.Invalid))
		}
	}
	if t.Len() == 0 {
		a.note("%s", a.noObjects())
	}
	if err := t.Write(a.stdout); err != nil {
		return err
	}
	bad := controllers.NotReady(slices.Values(all))
	if len(bad) > 0 {
		fmt.Fprintln(a.stdout)
	}
	return render.StandingTable(a.stdout, a.palette(), bad, len(bad))
}
