package main

import (
	"context"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"reconcile.dev/reconcile/cmd/reconcile/internal/render"
	"reconcile.dev/reconcile/state"
)

// runOptions are the flags of run, which are those of the bare command too.
type runOptions struct {
	watch  bool
	commit bool
}

func (o *runOptions) bind(f *pflag.FlagSet) {
	f.BoolVar(&o.watch, "watch", false, "stay, and reconcile whenever a file changes or something becomes due")
	f.BoolVar(&o.commit, "commit", false, "commit what was written (also: git.commit in reconcile.yaml)")
}

// loopOptions is what a command asks of the loop.
type loopOptions struct {
	watch    bool
	commit   bool
	progress render.Progress // never nil
}

// outcome is how a run ended.
type outcome struct {
	// Tree is the tree at its fixed point; nil when nothing had changed since the last run, and Counts tells.
	Tree *state.Tree
	// Counts holds how many objects of each kind there are, and how many of them are ready.
	Counts map[string]count
	Exit   int    // 0, 3 or 4: what the statuses say
	Ran    int    // effects performed by this run
	Wrote  int    // status files written
	Commit string // the commit that was made, or ""
}

// count tells how many objects of a kind there are, and how they are.
type count struct {
	Ready   int `json:"ready"`
	Waiting int `json:"waiting,omitempty"` // for someone, or for their turn, as they should
	Failed  int `json:"failed,omitempty"`
	Invalid int `json:"invalid,omitempty"`
}

// reconcileFunc drives the tree at a.global.dir to its fixed point. When ctx ends it stops and returns ctx.Err().
type reconcileFunc func(ctx context.Context, a *app, o loopOptions) (outcome, error)

func newRunCmd(a *app) *cobra.Command {
	o := &runOptions{}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Do what is missing until nothing is left to do (also without a command)",
		Example: "  reconcile run            # once, to the fixed point\n" +
			"  reconcile run --watch    # and again whenever something changes",
		Args: arguments(0, 0, ""),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.run(cmd.Context(), *o) },
	}
	o.bind(cmd.Flags())
	return cmd
}

func (a *app) run(ctx context.Context, o runOptions) error {
	progress := a.progress()
	out, err := a.reconcile(ctx, a, loopOptions{watch: o.watch, commit: o.commit, progress: progress})
	progress.Close()
	if err != nil {
		return err
	}
	if err := a.report(out); err != nil {
		return err
	}
	return exitWith(out.Exit)
}
