package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
)

func newDepsCmd(a *app) *cobra.Command {
	q := ops.DepsRequest{}
	cmd := &cobra.Command{
		Use:   "deps [NAME] [PATH]",
		Short: "Show what the project depends on, and where and how its code uses that",
		Long: `Show the dependencies that manifests declare, with the versions of lock files, where the code imports them and which of their names it uses most;
what is declared and not imported, or imported and not declared; and what a lock file or Go's module cache calls deprecated, or needs a later version of
the language. Nothing is asked from the network.`,
		Example: "  reconcile deps\n  reconcile deps react -o json\n  reconcile deps --all",
		Args:    arguments(0, 2, "a dependency and a path"),
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Dir = a.here
			if len(args) > 0 {
				q.Name = args[0]
			}
			if len(args) > 1 {
				q.Paths = args[1:]
			}
			return a.deps(cmd.Context(), q)
		},
	}
	cmd.Flags().BoolVar(&q.All, "all", false, "also show what only other dependencies need")
	return cmd
}

func (a *app) deps(ctx context.Context, q ops.DepsRequest) error {
	r, err := ops.Deps(ctx, a.env(), q)
	if err == nil {
		for _, why := range r.Unread {
			a.warnLine(why)
		}
	}
	return a.result(r, err, func() error {
		if len(r.Dependencies) == 0 {
			a.note("no dependencies were found")
			return nil
		}
		t := render.NewTable(a.palette(), "NAME", "ECOSYSTEM", "VERSION", "LOCKED", "STATE", "DEV", "USES", "MANIFEST", "NOTES")
		for _, d := range r.Dependencies {
			dev := ""
			if d.DevOnly {
				dev = "dev"
			}
			t.Row(d.Name, d.Ecosystem, d.Version, d.Locked, d.State, dev, fmt.Sprint(len(d.UsedIn)), d.Manifest, strings.Join(d.Warnings, "; "))
		}
		if err := t.Write(a.stdout); err != nil || q.Name == "" {
			return err
		}
		for _, d := range r.Dependencies {
			for _, at := range d.UsedIn {
				fmt.Fprintf(a.stdout, "  %s\n", clean(at))
			}
			for _, api := range d.CommonAPIs {
				fmt.Fprintf(a.stdout, "  %s %d\n", clean(api.Name), api.Uses)
			}
		}
		return nil
	})
}
