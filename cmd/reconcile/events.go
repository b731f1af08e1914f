package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/events"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
)

// eventsOptions are the flags of events.
type eventsOptions struct {
	since time.Duration
}

func newEventsCmd(a *app) *cobra.Command {
	o := &eventsOptions{}
	cmd := &cobra.Command{
		Use:   "events [KIND/NAME]",
		Short: "Show what changed, oldest first",
		Long: `Show what changed its phase, condition or state, oldest first. The log is local to this clone and bounded; what
lasts is in each object's history ("reconcile describe").`,
		Example: "  reconcile events --since 1h\n  reconcile events dag/checks -o json",
		Args:    arguments(0, 2, "an object"),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.events(strings.Join(args, "/"), *o)
		},
		ValidArgsFunction: a.completeObjects(false),
	}
	cmd.Flags().DurationVar(&o.since, "since", 0, "only what happened in this time, for example 1h")
	return cmd
}

func (a *app) events(what string, o eventsOptions) error {
	filter := events.Filter{}
	if what != "" {
		ref, err := parseRef(what)
		if err != nil {
			return err
		}
		filter.Ref = ref.String()
	}
	if o.since < 0 {
		return badUsage("--since %s is negative", o.since)
	}
	if o.since > 0 {
		filter.Since = a.now().Add(-o.since)
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
		color := render.Plain
		if e.Type == events.Warning {
			color = render.Yellow
		}
		object := strings.TrimSpace(fmt.Sprint(e.Ref, " ", e.Node))
		t.Cells(ago(e.Time, a.now()), render.Cell{Text: e.Type, Color: color}, render.Cell{Text: e.Reason},
			render.Cell{Text: object}, render.Cell{Text: a.fit(e.Message)})
	}
	return t.Write(a.stdout)
}
