package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/schemas"
)

func newReadyCmd(a *app) *cobra.Command {
	q, claim, issue := &ops.ReadyRequest{}, false, issueFlag{}
	cmd := &cobra.Command{
		Use:   "ready",
		Short: "Show what can be worked on now, or claim one item",
		Long: `Show what can be worked on now, the most urgent first: tasks of people, questions that wait for a person, nodes that wait
for their turn, and work that is blocked by an open question. The statuses are updated first, unless another run is active;
nothing is started, and nothing is waited for.

--claim claims the first free item of the agent, so that no other agent gets it; "reconcile hook finish" releases it. If
there is none, it prints a note, and null with -o json. Claimed items are listed only with --explain.`,
		Example: "  reconcile ready --explain\n" +
			"  reconcile ready --claim --agent engineer -o json\n" +
			"  reconcile ready --issue 42",
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if q.Issue = issue.pointer(); claim {
				return a.claim(cmd.Context(), *q)
			}
			return a.ready(cmd.Context(), *q)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&q.Taken, "explain", false,
		"also the reason for each item, when it is decided again, and who claimed it")
	f.BoolVar(&claim, "claim", false, "claim the first free item for the agent of --agent")
	f.StringVar(&q.Agent, "agent", "", "only items for this `AGENT`")
	f.Var(&issue, "issue", "only items about this issue")
	f.BoolVar(&q.NoRun, "no-run", false, "do not update the tree first")
	_ = cmd.RegisterFlagCompletionFunc("agent", a.completeNamesOf(schemas.AgentKind))
	return cmd
}

func (a *app) ready(ctx context.Context, q ops.ReadyRequest) error {
	items, err := ops.Ready(ctx, a.env(), q)
	return a.result(items, err, func() error {
		if len(items) == 0 {
			a.note("nothing is ready")
		}
		return render.ReadyTable(a.stdout, a.palette(), items, q.Taken, a.now())
	})
}

func (a *app) claim(ctx context.Context, q ops.ReadyRequest) error {
	r, err := ops.Claim(ctx, a.env(), q)
	if err != nil && r.Item == nil {
		return err
	}
	for _, it := range r.Unroutable {
		a.note("%s is not assigned: %s", it.Name, it.Message)
	}
	switch {
	case a.global.output != formatTable:
		return errors.Join(a.print(r.Item), err)
	case r.Item == nil:
		a.note("nothing is ready for %s", r.Agent)
		return nil
	}
	_, failed := fmt.Fprintf(a.stdout, "%s: %s\n", r.Item.Name, render.Line(r.Item.Task))
	return errors.Join(failed, err)
}
