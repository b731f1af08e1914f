package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reconcile.dev/reconcile/cmd/reconcile/internal/engine"
	"reconcile.dev/reconcile/cmd/reconcile/internal/ops"
	"reconcile.dev/reconcile/controllers"
	"reconcile.dev/reconcile/schemas"
	"reconcile.dev/reconcile/state"
)

// runOptions are the flags of run, which are those of the bare command too.
type runOptions struct {
	watch  bool
	commit bool
	push   bool
}

func (o *runOptions) bind(f *pflag.FlagSet) {
	f.BoolVar(&o.watch, "watch", false, "stay, and reconcile whenever a file changes or something becomes due")
	f.BoolVar(&o.commit, "commit", false, "commit what was written (also: git.commit in reconcile.yaml)")
	f.BoolVar(&o.push, "push", false, "share the branch: commit, push, take in what others push (also: git.push)")
}

func newRunCmd(a *app) *cobra.Command {
	o := &runOptions{}
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
			only, err := a.selection(cmd.Context(), args, *o)
			if err != nil {
				return err
			}
			return a.run(cmd.Context(), *o, only)
		},
		ValidArgsFunction: a.completeNodes(schemas.DAGKind),
	}
	o.bind(cmd.Flags())
	return cmd
}

// selection reads what to perform; nil is everything.
func (a *app) selection(ctx context.Context, args []string, o runOptions) (*controllers.Selection, error) {
	args = withRef(args)
	switch {
	case len(args) == 0:
		return nil, nil
	case o.watch:
		return nil, badUsage("--watch performs everything; leave out either it or %s", args[0])
	case len(args) > 2:
		return nil, badUsage("run takes one DAG and one NODE, not %q", args[2])
	}
	s, t, err := a.load(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	e, err := ops.Find(t, args[0])
	switch {
	case err != nil:
		return nil, badUsage("%v", err)
	case e.Kind != schemas.DAGKind.Name:
		return nil, badUsage("%s is not run by itself; DAGs are, and their nodes", e.Ref)
	case e.Gone():
		return nil, badUsage("%v", ops.NotFound(t, e.Ref))
	case len(args) == 2 && e.Object != nil:
		err = ops.FindNode(e, args[1])
	}
	if err != nil {
		return nil, badUsage("%v", err)
	}
	return &controllers.Selection{DAG: e.Name, Nodes: args[1:]}, nil
}

func (a *app) run(ctx context.Context, o runOptions, only *controllers.Selection) error {
	out, err := a.reconcile(ctx, engine.Request{Watch: o.watch, Commit: o.commit || o.push, Push: o.push, Only: only}, true)
	if err != nil {
		return err
	}
	if out.Tree == nil && int(out.Verdict) != exitOK {
		if out.Tree, err = a.lookAgain(ctx); err != nil {
			return err
		}
	}
	if err := a.report(out); err != nil {
		return err
	}
	if out.Busy != nil {
		return lockTimeout(out.Busy, "run again")
	}
	if out.Held {
		return exitWith(exitBusy)
	}
	return exitWith(int(out.Verdict))
}

// lookAgain reads the tree that a run did not need to read, to tell what is wrong in it.
func (a *app) lookAgain(ctx context.Context) (*state.Tree, error) {
	s, t, err := a.load(ctx)
	if err != nil {
		return nil, err
	}
	return t, s.Close()
}
