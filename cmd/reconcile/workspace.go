package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
)

func newWorkspaceCmd(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "workspace",
		Short: "List, look into and delete the folders in which agents work",
		Long: `An agent with workspace: clone (or worktree) works in a folder of its own, outside of the repository. NAME is the name of a
workspace, the beginning of it, or the node that works there (build, or dag/checks:build).`,
		Example: "  reconcile workspace list",
		RunE:    noSubcommand,
	}
	cmd.AddCommand(
		&cobra.Command{
			Use: "list", Aliases: []string{"ls"}, Short: "List the workspaces of the tree", Args: arguments(0, 0, ""),
			Example: "  reconcile workspace list\n  reconcile workspace list -o json",
			RunE:    func(cmd *cobra.Command, _ []string) error { return a.listWorkspaces(cmd.Context()) },
		},
		&cobra.Command{
			Use: "open NAME", Short: "Print the path of a workspace, for example to enter it", Args: arguments(1, 1, "the name of a workspace"),
			Example: `  cd "$(reconcile workspace open build)"`,
			RunE:    func(cmd *cobra.Command, args []string) error { return a.openWorkspace(cmd.Context(), args[0]) },
		},
		&cobra.Command{
			Use: "diff NAME", Short: "Show what changed in a workspace since the commit that it was made from", Args: arguments(1, 1, "the name of a workspace"),
			Example: "  reconcile workspace diff build",
			RunE:    func(cmd *cobra.Command, args []string) error { return a.diffWorkspace(cmd.Context(), args[0]) },
		},
		&cobra.Command{
			Use: "drop NAME", Short: "Delete a workspace; what is not committed there is kept in a reference", Args: arguments(1, 1, "the name of a workspace"),
			Long: `Delete a workspace. What is not committed there is first committed to refs/reconcile/parked/NAME in the repository. A
workspace in which a run works is not deleted.`,
			Example: "  reconcile workspace drop build\n  git show refs/reconcile/parked/checks.build-0123456789abcdef-1",
			RunE:    func(cmd *cobra.Command, args []string) error { return a.dropWorkspace(cmd.Context(), args[0]) },
		},
	)
	return cmd
}

func (a *app) listWorkspaces(ctx context.Context) error {
	list, err := ops.Workspaces(ctx, a.env())
	return a.result(list, err, func() error {
		if len(list) == 0 {
			a.note("there is no workspace")
			return nil
		}
		table := render.NewTable(a.palette(), "NAME", "STATE", "NODE", "AGENT", "SIZE", "SINCE")
		for _, w := range list {
			state := w.State
			if w.Gone {
				state += " (removed)"
			}
			table.Row(w.Name, state, w.Owner+":"+w.Node, w.Agent, render.Bytes(w.Bytes), render.Age(a.now().Sub(w.Since)))
		}
		return table.Write(a.stdout)
	})
}

func (a *app) openWorkspace(ctx context.Context, name string) error {
	w, err := ops.FindWorkspace(ctx, a.env(), name)
	return a.result(w, err, func() error {
		if w.Gone {
			return fmt.Errorf("%s was removed; reconcile workspace drop %s removes its record", clean(w.Dir), w.Name)
		}
		_, err := fmt.Fprintln(a.stdout, w.Dir)
		return err
	})
}

func (a *app) diffWorkspace(ctx context.Context, name string) error {
	diff, err := ops.DiffWorkspace(ctx, a.env(), name)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(a.stdout, render.Text(string(diff)))
	return err
}

func (a *app) dropWorkspace(ctx context.Context, name string) error {
	r, err := ops.DropWorkspace(ctx, a.env(), name)
	return a.result(r, err, func() error {
		if r.Parked != "" {
			a.note("deleted %s; what was not committed is in %s", r.Name, r.Parked)
		} else {
			a.note("deleted %s", r.Name)
		}
		return nil
	})
}
