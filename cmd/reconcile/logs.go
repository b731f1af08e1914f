package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"reconcile.dev/reconcile/cmd/reconcile/internal/events"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/schemas/document"
)

func newLogsCmd(a *app) *cobra.Command {
	q, follow, tail := &ops.LogsRequest{}, false, -1
	cmd := &cobra.Command{
		Use:   "logs KIND/NAME [NODE]",
		Short: "Print the output of the commands of a DAG",
		Long: `Print the output of the commands of a DAG: for each node, or for one, the current attempt, which is the latest one with
the node's present definition and inputs, even if another one ran after it. For a clarification request, print the output
of the asked agent, in each round or in one (round_1).

Full logs are local to the clone that ran the command (.reconcile/logs). If a log does not exist here, the end of the
output is printed from the record.`,
		Example: "  reconcile logs dag/checks\n  reconcile logs dag checks unit_tests --tail 50\n" +
			"  reconcile logs dag/checks unit_tests -f\n  reconcile logs --failed\n  reconcile logs request/db-layer round_1",
		Args: arguments(0, 3, "a DAG or a clarification request"),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch args = withRef(args); {
			case tail < 0 && cmd.Flags().Changed("tail"):
				return badUsage("--tail %d: the number of lines is at least 0; without --tail, logs prints all", tail)
			case len(args) > 2:
				return badUsage("logs takes KIND/NAME and a NODE, not %q", args[2])
			case follow && (q.Failed || q.Previous):
				return badUsage("--follow shows what runs now; it excludes --failed and --previous")
			case follow && a.global.output != formatTable:
				return badUsage("--follow prints the log as it is; it does not go with -o %s", a.global.output)
			case len(args) == 2:
				q.Node = args[1]
				fallthrough
			case len(args) == 1:
				q.Object = args[0]
			}
			if follow && q.Object != "" {
				return a.followLog(cmd.Context(), *q, tail)
			}
			return a.logs(cmd.Context(), *q, tail)
		},
		ValidArgsFunction: a.completeNodes(schemas.DAGKind, schemas.ClarificationRequestKind),
	}
	f := cmd.Flags()
	f.BoolVarP(&follow, "follow", "f", false, "print the output of a node until it ends, whichever process runs it")
	f.BoolVar(&q.Failed, "failed", false, "only nodes that failed; without a name, of all DAGs")
	f.BoolVar(&q.Previous, "previous", false, "the attempt before the current one")
	f.IntVar(&tail, "tail", -1, "only the last `N` lines of each log")
	hideDefaults(f, "tail")
	return cmd
}

func (a *app) logs(ctx context.Context, q ops.LogsRequest, tail int) error {
	r, err := ops.Logs(ctx, a.env(), q)
	switch {
	case err != nil:
		return err
	case a.global.output != formatTable:
		return a.print(r.Attempts)
	case len(r.Attempts) == 0 && q.Failed:
		a.note("no node has failed")
	case len(r.Attempts) == 0:
		a.note("nothing of %s has run yet", r.Of)
	}
	for i, at := range r.Attempts {
		if q.Node == "" {
			head := strings.TrimSpace(fmt.Sprintf("%s, %s %s", at.Node, at.State, at.Took))
			if q.Object == "" {
				head = at.Owner + " " + head
			}
			if i > 0 {
				a.printf("\n")
			}
			a.printf("==> %s <==\n", render.Line(head))
		}
		if err := a.printLog(ctx, at, tail); err != nil {
			return err
		}
	}
	return nil
}

// printLog prints one attempt, from its log or from its record.
func (a *app) printLog(ctx context.Context, at ops.Attempt, tail int) error {
	if at.Former {
		a.note("%s %s has not run since it was changed; this is the attempt before", at.Owner, at.Node)
	}
	text, whole, err := ops.ReadLog(ctx, a.env(), at, tail)
	if err != nil {
		return err
	}
	defer text.Close()
	err = a.copyText(text)
	if at.State == schemas.NodeFailed && at.Output == "" {
		a.note("%s %s printed nothing, and failed: %s", at.Owner, at.Node, at.Message)
	}
	if !whole && at.Log != "" && at.State != schemas.NodeRunning {
		a.note("the log of %s %s is not here (%s): logs stay where the node ran, and go with its record; this is the end "+
			"of the output, which the record keeps. \"reconcile retry %s %s\" runs it again here", at.Owner, at.Node, at.Log, at.Owner, at.Node)
	}
	return err
}

// followLog prints the output of a node until it ends, or the reader of stdout has gone.
func (a *app) followLog(ctx context.Context, q ops.LogsRequest, tail int) error {
	signal.Ignore(syscall.SIGPIPE)
	for part, err := range ops.FollowLog(ctx, a.env(), q, tail) {
		switch {
		case err != nil:
			return err
		case part.Ended != nil:
			err = a.printLog(ctx, *part.Ended, part.Lines)
		case part.Attempt > 0:
			_, err = fmt.Fprintf(a.stdout, "==> %s, attempt %d <==\n", render.Line(part.Node), part.Attempt)
		case part.Text != nil:
			err = a.copyText(part.Text)
		}
		if err != nil {
			return unlessGone(err)
		}
		if unread(a.stdout) {
			return nil
		}
	}
	return nil
}

// copyText copies output: unchanged to files and pipes, escaped to a terminal.
func (a *app) copyText(r io.Reader) error {
	if isTerminal(a.stdout) {
		return render.Copy(a.stdout, r)
	}
	_, err := io.Copy(a.stdout, r)
	return err
}

func newEventsCmd(a *app) *cobra.Command {
	q, follow := &ops.EventsRequest{}, false
	cmd := &cobra.Command{
		Use:   "events [KIND/NAME]",
		Short: "Show events, oldest first",
		Long: `Show changes of phases, conditions and states, questions and answers, oldest first. The log is local to this clone and
bounded; each object has a permanent history ("reconcile describe --history").

--follow prints new events of any process until Ctrl-C, or until the reader of the output has gone. With -o json it prints
one object per line.`,
		Example: "  reconcile events --since 1h\n  reconcile events dag/checks -o json\n" +
			"  reconcile events --follow --type clarification-escalated -o json",
		Args: arguments(0, 2, "an object"),
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Object = strings.Join(args, "/")
			return a.events(cmd.Context(), *q, follow)
		},
		ValidArgsFunction: a.completeObjects(false),
	}
	f := cmd.Flags()
	f.DurationVar(&q.Since, "since", 0, "only events of the last `DURATION`, for example 1h")
	f.StringVar(&q.Type, "type", "", "only events of this `TYPE`: "+strings.Join(events.Types(), ", "))
	f.BoolVarP(&follow, "follow", "f", false, "keep running, and print new events")
	_ = cmd.RegisterFlagCompletionFunc("type",
		cobra.FixedCompletions(events.Types(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) events(ctx context.Context, q ops.EventsRequest, follow bool) error {
	if follow {
		return a.followEvents(ctx, q)
	}
	found, err := ops.Events(ctx, a.env(), q)
	return a.result(append([]events.Event{}, found...), err, func() error {
		if len(found) == 0 {
			a.note("no events")
		}
		t := render.NewTable(a.palette(), "AGE", "TYPE", "REASON", "OBJECT", "MESSAGE")
		for _, e := range found {
			t.Cells(render.Cell{Text: render.Age(a.now().Sub(e.Time.Time))}, render.Cell{Text: e.Type, Color: eventColor(&e)},
				render.Cell{Text: e.Reason}, render.Cell{Text: eventObject(&e)}, render.Cell{Text: e.Message})
		}
		return t.Write(a.stdout)
	})
}

func eventColor(e *events.Event) render.Color {
	if e.Type == events.Warning {
		return render.Yellow
	}
	return render.Plain
}

// eventObject returns, for example, "dag/checks build".
func eventObject(e *events.Event) string { return strings.TrimSpace(fmt.Sprint(e.Ref, " ", e.Node)) }

// followEvents prints the events of the log, and then those that are appended, until ctx ends or the reader of stdout
// has gone.
func (a *app) followEvents(ctx context.Context, q ops.EventsRequest) error {
	signal.Ignore(syscall.SIGPIPE)
	for b, err := range ops.FollowEvents(ctx, a.env(), q) {
		if err != nil {
			return err
		}
		if b.Missing != 0 {
			fmt.Fprintln(a.stderr, missingText(b.Missing))
		}
		if len(b.Events) > 0 {
			if err := a.writeEvents(b.Events); err != nil {
				return unlessGone(err)
			}
		}
		if unread(a.stdout) {
			return nil
		}
	}
	return nil
}

func missingText(n int64) string {
	if n == events.Unknown {
		return "the log was truncated or deleted; events may be missing here"
	}
	return "missing here: " + schemas.Count(int(n), "line") + " of the log, which was rotated more than once before all was read"
}

// writeEvents prints events without buffering, so that the reader of a pipe gets each at once.
func (a *app) writeEvents(list []events.Event) error {
	var b bytes.Buffer
	for i := range list {
		if err := a.eventLine(&b, &list[i]); err != nil {
			return err
		}
	}
	_, err := a.stdout.Write(b.Bytes())
	return err
}

func (a *app) eventLine(b *bytes.Buffer, e *events.Event) error {
	switch a.global.output {
	case formatJSON:
		enc := json.NewEncoder(b)
		enc.SetEscapeHTML(false)
		return enc.Encode(e)
	case formatYAML:
		b.WriteString("---\n")
		return document.YAML(b, e)
	}
	kind := a.palette().Paint(eventColor(e), fmt.Sprintf("%-7s", render.Line(e.Type)))
	fmt.Fprintf(b, "%s  %s  %-12s  %-28s  %s\n", e.Time.UTC().Format(time.DateTime), kind, render.Line(e.Reason),
		render.Line(eventObject(e)), render.Line(e.Message))
	return nil
}
