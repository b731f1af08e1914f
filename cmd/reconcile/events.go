package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/events"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
)

// eventsOptions are the flags of events.
type eventsOptions struct {
	since  time.Duration
	typ    string
	follow bool
}

func newEventsCmd(a *app) *cobra.Command {
	o := &eventsOptions{}
	cmd := &cobra.Command{
		Use:   "events [KIND/NAME]",
		Short: "Show what changed, oldest first",
		Long: `Show what changed its phase, condition or state, and what was asked and answered, oldest first. The log is local to
this clone and bounded; what lasts is in each object's history ("reconcile describe").

--follow stays, and prints what any process adds to the log, until Ctrl-C or until nobody reads any more. With -o json it
prints one object a line.`,
		Example: "  reconcile events --since 1h\n  reconcile events dag/checks -o json\n" +
			"  reconcile events --follow --type clarification-escalated -o json",
		Args: arguments(0, 2, "an object"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.events(cmd.Context(), strings.Join(args, "/"), *o)
		},
		ValidArgsFunction: a.completeObjects(false),
	}
	f := cmd.Flags()
	f.DurationVar(&o.since, "since", 0, "only what happened in this `DURATION`, for example 1h")
	f.StringVar(&o.typ, "type", "", "only events of this `TYPE`: "+strings.Join(events.Types(), ", "))
	f.BoolVarP(&o.follow, "follow", "f", false, "stay, and print what happens as it happens")
	_ = cmd.RegisterFlagCompletionFunc("type",
		cobra.FixedCompletions(events.Types(), cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (a *app) events(ctx context.Context, what string, o eventsOptions) error {
	filter, err := a.eventFilter(ctx, what, o)
	if err != nil {
		return err
	}
	if o.follow {
		return a.followEvents(ctx, filter)
	}
	root, err := a.root()
	if err != nil {
		return err
	}
	defer root.Close()
	found, err := events.Read(root, filter)
	if err != nil {
		return err
	}
	return a.printEvents(found)
}

// eventFilter is what the command line asks for.
func (a *app) eventFilter(ctx context.Context, what string, o eventsOptions) (events.Filter, error) {
	filter := events.Filter{Type: o.typ}
	if what != "" {
		ref, err := a.refOf(ctx, what)
		if err != nil {
			return filter, err
		}
		filter.Ref = ref.String()
	}
	if types := events.Types(); o.typ != "" && !slices.Contains(types, o.typ) {
		return filter, badUsage("no event is of type %q%s; --type can be %s", o.typ, didYouMean(o.typ, types),
			strings.Join(types, ", "))
	}
	if o.since < 0 {
		return filter, badUsage("--since %s is negative", o.since)
	}
	if o.since > 0 {
		filter.Since = a.now().Add(-o.since)
	}
	return filter, nil
}

func (a *app) printEvents(found []events.Event) error {
	if a.global.output != formatTable {
		if found == nil {
			found = []events.Event{}
		}
		return a.print(found)
	}
	if len(found) == 0 {
		a.note("no events")
	}
	t := render.NewTable(a.palette(), "AGE", "TYPE", "REASON", "OBJECT", "MESSAGE")
	for _, e := range found {
		t.Cells(ago(e.Time, a.now()), render.Cell{Text: e.Type, Color: eventColor(&e)}, render.Cell{Text: e.Reason},
			render.Cell{Text: eventObject(&e)}, render.Cell{Text: e.Message})
	}
	return t.Write(a.stdout)
}

func eventColor(e *events.Event) render.Color {
	if e.Type == events.Warning {
		return render.Yellow
	}
	return render.Plain
}

// eventObject is "dag/checks build".
func eventObject(e *events.Event) string { return strings.TrimSpace(fmt.Sprint(e.Ref, " ", e.Node)) }
