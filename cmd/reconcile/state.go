package main

import (
	"context"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
)

func newStateCmd(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "state",
		Short: "Show the activity of the agents: who works, asks, answers or waits",
		Long: `Show the activity of the agents from state/agent-status.json: who works on which issue, who waits for an answer, and who
answers. It only reads: nothing runs, and no question becomes stale.

-o json and yaml print the content of the file.`,
		Example: "  reconcile state\n  reconcile state -o json",
		Args:    arguments(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.agentState(cmd.Context()) },
	}
}

func (a *app) agentState(ctx context.Context) error {
	r, err := ops.Agents(ctx, a.env())
	if err != nil {
		return err
	}
	if a.global.output != formatTable {
		return a.print(r.File)
	}
	if len(r.Agents) == 0 {
		a.note("no agents")
	}
	rows := make([]render.AgentRow, len(r.Agents))
	for i, agent := range r.Agents {
		rows[i] = render.AgentRow(agent)
	}
	return render.AgentTable(a.stdout, a.palette(), rows, a.now())
}
