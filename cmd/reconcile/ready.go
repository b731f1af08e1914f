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
		Short: "Show what can be worked on now, or take one item of it",
		Long: `Show what can be worked on now, the most urgent first: tasks of people, questions that wait for a person,
nodes that wait for their turn, and what cannot go on because a question is open. What follows from the files is decided
and written before, unless another run is at work; nothing is started, and nothing is waited for.

--claim takes the first free item of the agent, so that nobody else is given it; "reconcile hook finish" gives it back.
With nothing to take it says so, and prints null with -o json. Items that somebody took are listed with --explain only.`,
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
		"also why each item stands as it does, when it is looked at again, and who took it")
	f.BoolVar(&claim, "claim", false, "take the first free item for the agent that --agent names")
	f.StringVar(&q.Agent, "agent", "", "only what this `AGENT` can do")
	f.Var(&issue, "issue", "only what is about this issue")
	f.BoolVar(&q.NoRun, "no-run", false, "only look")
	_ = cmd.RegisterFlagCompletionFunc("agent", a.completeNamesOf(schemas.AgentKind))
	return cmd
}

func (a *app) ready(ctx context.Context, q ops.ReadyRequest) error {
	items, err := ops.Ready(ctx, a.env(), q)
	switch {
	case err != nil:
		return err
	case a.global.output != formatTable:
		return a.print(items)
	case len(items) == 0:
		a.note("nothing is ready")
	}
	return render.ReadyTable(a.stdout, a.palette(), items, q.Taken, a.now())
}

func (a *app) claim(ctx context.Context, q ops.ReadyRequest) error {
	r, err := ops.Claim(ctx, a.env(), q)
	if err != nil && r.Item == nil {
		return err
	}
	for _, it := range r.Unroutable {
		a.note("%s is not handed out: %s", it.Name, it.Message)
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
