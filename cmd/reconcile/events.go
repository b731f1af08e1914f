package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/events"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/schemas/document"
)

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
	return "missing here: " + render.Plural(int(n), "line") + " of the log, which was rotated more than once before all was read"
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

// unlessGone returns err, or nil if it says that the reader of stdout has gone.
func unlessGone(err error) error {
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, os.ErrClosed) {
		return nil
	}
	return err
}
