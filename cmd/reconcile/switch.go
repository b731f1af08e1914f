package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/schemas"
)

func newSwitchCmd(a *app) *cobra.Command {
	q := &ops.SwitchRequest{}
	cmd := &cobra.Command{
		Use:   "switch SESSION",
		Short: "Make a session the active one of its owner",
		Long: `Make a session the active one of its owner: its spec asks for Active, and the owner's other sessions that ask
for Active then ask for Paused. Only the word behind "phase" changes in their files. Then the tree is run once.`,
		Example: "  reconcile switch health",
		Args:    arguments(1, 1, "a session"),
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Session = args[0]
			return a.switchTo(cmd.Context(), *q)
		},
		ValidArgsFunction: a.completeNamesOf(schemas.SessionKind),
	}
	cmd.Flags().BoolVar(&q.NoRun, "no-run", false, "only edit the specs; the next run follows them")
	return cmd
}

func (a *app) switchTo(ctx context.Context, q ops.SwitchRequest) error {
	r, err := ops.Switch(ctx, a.env(), q)
	if r.Session.Name != "" && len(r.Edits) == 0 {
		a.note("%s is the active one already", r.Session)
	}
	for _, ed := range r.Edits {
		fmt.Fprintf(a.stdout, "%s: phase %s (%s)\n", ed.Ref, ed.Phase, ed.Path)
	}
	if err != nil || r.Run == nil {
		return err
	}
	return a.ended(*r.Run)
}
