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
		Short: "Let this tree send data to the addresses that it names, and let the checks of this project run",
		Long: `Show the addresses to which the settings of the tree send data (index.endpoint, github.baseURL), and to which its agents
send prompts and keys by way of the metering proxy (runner.http.baseURL, proxy.upstream of profiles), with the environment
variable or file whose value is sent, and allow them. A tree may be untrusted: until its addresses are allowed, nothing is sent
to them, search uses words only, nothing is mirrored, and agents that need them fail.

It also lets "reconcile inspect" and "reconcile test" run the commands of this project, which can do anything that you can;
that works without a tree, too.

A service of models that gets its own key from its own variable, as api.anthropic.com from ANTHROPIC_API_KEY, needs no
permission, and neither does this machine where no key is sent.

The permission is written to allowed.json in the user's configuration folder, and applies to all trees with the same
address and variable. For a single process, for example in CI, ` + ops.AllowVariable + `=URL,… does the same, with the word
checks for the checks of any project.`,
		Example: "  reconcile allow --list\n  reconcile allow\n  reconcile allow --remove https://api.example.com/v1",
		Args:    arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error {
			q.Dir = a.project
			return a.allow(cmd.Context(), q)
		},
	}
	cmd.Flags().BoolVar(&q.List, "list", false, "only show the addresses, and whether they are allowed")
	cmd.Flags().StringVar(&q.Remove, "remove", "", "revoke the permission for the address, or the checks of the folder, `URL`")
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
		return a.print(r)
	}
	allowed := map[bool]string{true: "may run", false: "may not run"}
	a.note("the checks of %s %s", r.Folder, allowed[r.Checks])
	if len(r.Destinations) == 0 {
		a.note("the settings, agents and DAGs send data to no address")
		return nil
	}
	table := render.NewTable(a.palette(), "SETTING", "ADDRESS", "KEY", "SENDS", "ALLOWED")
	for _, d := range r.Destinations {
		table.Row(d.Setting, clean(d.URL), cmp.Or(d.Variable, clean(d.File), "-"), d.Sends, map[bool]string{true: "yes", false: "no"}[d.Allowed])
	}
	if err := table.Write(a.stdout); err != nil || q.List {
		return err
	}
	a.note("wrote %s", r.File)
	return nil
}
