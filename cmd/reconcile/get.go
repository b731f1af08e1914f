package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"k8s.io/client-go/util/jsonpath"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
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
			render.Plural(n, "problem"), r.Nameless[0].Place)
	}
	switch {
	case a.global.output == formatName:
		return a.printNames(r)
	case a.global.output == formatTable || a.global.output == formatWide:
		return a.getTables(r)
	case r.Single:
		return a.printAs(ops.NewObject(r.Entries[0]))
	}
	return a.printAs(ops.NewObjectList(r.Entries))
}

func (a *app) printNames(r ops.GetResult) error {
	for _, e := range r.Entries {
		if _, err := fmt.Fprintln(a.stdout, clean(e.Ref.String())); err != nil {
			return err
		}
	}
	return nil
}

// printAs is print with support for jsonpath. Missing fields print nothing, like in kubectl.
func (a *app) printAs(v any) error {
	template, ok := strings.CutPrefix(a.global.output, jsonPathPrefix)
	if !ok {
		return a.print(v)
	}
	parsed := jsonpath.New("template").AllowMissingKeys(true)
	if err := parsed.Parse(template); err != nil {
		return badUsage("-o %s: %v; write a template of kubectl, as {.status.phase}", a.global.output, err)
	}
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	var fields any
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	var b strings.Builder
	if err := parsed.Execute(&b, fields); err != nil {
		return badUsage("-o %s: %v", a.global.output, err)
	}
	if text := clean(b.String()); strings.HasSuffix(text, "\n") {
		_, err = fmt.Fprint(a.stdout, text)
	} else {
		_, err = fmt.Fprintln(a.stdout, text)
	}
	return err
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
		return a.printNames(r)
	}
	for _, e := range r.Entries {
		if a.global.output == formatYAML {
			fmt.Fprintln(a.stdout, "---")
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
	counts := readiness.StandingByKind(slices.Values(all))
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
	bad := readiness.NotReady(slices.Values(all), len(all))
	if len(bad) > 0 {
		fmt.Fprintln(a.stdout)
	}
	return render.StandingTable(a.stdout, a.palette(), bad, len(bad))
}
