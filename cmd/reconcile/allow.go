package main

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
)

func newAllowCmd(a *app) *cobra.Command {
	q := ops.AllowRequest{}
	cmd := &cobra.Command{
		Use:   "allow",
		Short: "Let the settings of this tree send data to the addresses that they name",
		Long: `Show which addresses the settings of the tree send data to (index.endpoint, github.baseURL), and the environment
variable whose value goes along, and allow them. A tree may come from anybody: until its addresses are allowed, nothing
is sent there, search goes by words, and nothing is mirrored.

What is allowed is written to allowed.json in the configuration folder of the user, and holds for all trees that name
the same address and the same variable. For one process, as in CI, ` + ops.AllowVariable + `=URL,… does the same.`,
		Example: "  reconcile allow --list\n  reconcile allow\n  reconcile allow --remove https://api.example.com/v1",
		Args:    arguments(0, 0, ""),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.allow(cmd.Context(), q) },
	}
	cmd.Flags().BoolVar(&q.List, "list", false, "only show what the settings name, and whether it is allowed")
	cmd.Flags().StringVar(&q.Remove, "remove", "", "take back what was allowed for the address `URL`")
	cmd.MarkFlagsMutuallyExclusive("list", "remove")
	return cmd
}

func (a *app) allow(ctx context.Context, q ops.AllowRequest) error {
	r, err := ops.Allow(ctx, a.env(), q)
	switch {
	case err != nil:
		return err
	case q.Remove != "":
		a.note("%s is not allowed any more", q.Remove)
		return nil
	case a.global.output != formatTable:
		return a.print(r.Destinations)
	case len(r.Destinations) == 0:
		a.note("the settings name no address that data is sent to")
		return nil
	}
	table := render.NewTable(a.palette(), "SETTING", "ADDRESS", "VARIABLE", "SENDS", "ALLOWED")
	for _, d := range r.Destinations {
		table.Row(d.Setting, clean(d.URL), cmp.Or(d.Variable, "-"), d.Sends, map[bool]string{true: "yes", false: "no"}[d.Allowed])
	}
	if err := table.Write(a.stdout); err != nil || q.List {
		return err
	}
	a.note("wrote %s", r.File)
	return nil
}
