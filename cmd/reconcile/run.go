package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/schemas"
)

// bindRun binds the flags of run, which are those of the bare command too.
func bindRun(q *ops.RunRequest, f *pflag.FlagSet) {
	f.BoolVar(&q.Watch, "watch", false, "stay, and reconcile whenever a file changes or something becomes due")
	f.BoolVar(&q.Commit, "commit", false, "commit what was written (also: git.commit in reconcile.yaml)")
	f.BoolVar(&q.Push, "push", false, "share the branch: commit, push, take in what others push (also: git.push)")
}

func newRunCmd(a *app) *cobra.Command {
	q := &ops.RunRequest{}
	cmd := &cobra.Command{
		Use:   "run [dag/NAME [NODE]]",
		Short: "Do what is missing until nothing is left to do (also without a command)",
		Long: `Do what is missing until nothing is left to do: of the whole tree, of one DAG, or of one node with all that it needs. What
has succeeded is not run again. The questions that nodes ask are put and answered with them; nothing else starts.`,
		Example: "  reconcile run                         # once, to the fixed point\n" +
			"  reconcile run --watch                 # and again whenever something changes\n" +
			"  reconcile run dag/checks unit_tests   # that node and what it needs",
		Args: arguments(0, 3, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch args = withRef(args); {
			case len(args) > 2:
				return badUsage("run takes one DAG and one NODE, not %q", args[2])
			case len(args) == 2:
				q.Node = args[1]
				fallthrough
			case len(args) == 1:
				q.Object = args[0]
			}
			return a.run(cmd.Context(), *q)
		},
		ValidArgsFunction: a.completeNodes(schemas.DAGKind),
	}
	bindRun(q, cmd.Flags())
	return cmd
}

func (a *app) run(ctx context.Context, q ops.RunRequest) error {
	r, err := ops.Run(ctx, a.env(), q)
	if err != nil {
		return err
	}
	return a.ended(r)
}
